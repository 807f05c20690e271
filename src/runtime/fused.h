// Calls of a group of calls that one request does together. Small all-reduces: their inputs lie one behind the other in
// a piece of memory, and since each element is combined in the canonical order, its bits do not depend on where it
// lies.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

namespace tutti::internal {

class Request;

class Fused {
 public:
  struct Part {
    const std::byte* in = nullptr;
    std::byte* out = nullptr;
    std::size_t bytes = 0;             // 0: nothing is copied
    std::shared_ptr<Request> request;  // of a started call; nullptr: nobody asks after it
  };
  // Copies the inputs. digest: of what the calls are.
  Fused(std::vector<Part> parts, std::uint64_t digest);

  std::byte* data() { return data_.get(); }  // input and output of the one call
  bool does(const Request& request) const;   // it is that of one of the calls
  std::uint64_t digest() const { return digest_; }

  // The calls begin, by this request: calls `begin` for the others. The request lives until it is over, though nobody
  // may hold it.
  void begin(std::shared_ptr<Request> request, const std::function<void(Request&)>& begin);
  // It is over: copies the outputs if all `is_well`, and calls `finish` for the other requests. Returns what was kept.
  // Under the engine's lock.
  [[nodiscard]] std::shared_ptr<Request> deliver(bool is_well, const std::function<void(Request&)>& finish);

 private:
  const std::vector<Part> parts_;
  const std::unique_ptr<std::byte[]> data_;
  const std::uint64_t digest_;
  std::shared_ptr<Request> kept_;
};

}  // namespace tutti::internal
