// What a device tells beside its completions: that its port has gone down or come back, that it or a queue pair failed.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

struct ibv_context;

namespace tutti::internal::verbs {

class DeviceEvents {
 public:
  // Of `context`, which must outlive this; `name` is its device's. Throws Error{system}.
  DeviceEvents(ibv_context* context, std::string name, std::uint8_t port);

  // Takes in what has been told, and never blocks. A queue pair that failed says so itself; what remains is why nothing
  // can be expected of the device: it has failed, or its port has been known to be down for kLongestDown. Empty: all is
  // well. A device cannot be counted on to fail each write then (Soft-RoCE of Linux 6.1 may lose one without a word).
  std::string error_text();

  static constexpr std::chrono::seconds kLongestDown{2};  // as long as a queue pair may go on trying

 private:
  using Clock = std::chrono::steady_clock;
  void take_in();

  ibv_context* const context_;
  const std::string name_;
  const std::uint8_t port_;
  bool has_failed_ = false;
  std::optional<Clock::time_point> down_since_;
};

}  // namespace tutti::internal::verbs
