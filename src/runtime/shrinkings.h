// Which ranks go on after a loss, as the hub has decided it for each communicator.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <vector>

#include "control/control.h"

namespace tutti::internal {

// Thread-safe.
class Shrinkings {
 public:
  // Notice{shrunk}: kept until somebody waits for it. {expelled}: nothing comes any more.
  void heard(const Notice& notice) {
    const std::lock_guard lock(mutex_);
    if (notice.kind == Notice::Kind::shrunk)
      decided_.insert_or_assign(notice.communicator, notice);
    else
      is_over_ = true;
    news_.notify_all();
  }

  // Blocks until the decision on that communicator is there, and takes it. Nothing: not by then, or there is none.
  std::optional<Notice> wait(std::uint64_t communicator, std::chrono::milliseconds limit) {
    std::unique_lock lock(mutex_);
    news_.wait_for(lock, limit, [&] { return is_over_ || decided_.contains(communicator); });
    const auto found = decided_.extract(communicator);
    return found ? std::optional(found.mapped()) : std::nullopt;
  }

 private:
  std::mutex mutex_;
  std::condition_variable news_;
  std::map<std::uint64_t, Notice> decided_;  // by communicator
  bool is_over_ = false;
};

}  // namespace tutti::internal
