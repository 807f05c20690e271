// Which ranks go on after a loss, as the hub has decided it for each communicator.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <utility>

#include "control/control.h"

namespace tutti::internal {

// Thread-safe.
class Shrinkings {
 public:
  // Notice{shrunk}: kept until somebody waits for it. {expelled}: nothing else comes any more.
  void heard(const Notice& notice) {
    const std::lock_guard lock(mutex_);
    if (notice.kind == Notice::Kind::shrunk)
      decided_[notice.communicator].push_back(notice);
    else
      expelled_ = notice;
    news_.notify_all();
  }

  // Blocks until the next decision on that communicator is there, and takes it; or the word that this rank is expelled.
  // Nothing: not within `limit`.
  std::optional<Notice> wait(std::uint64_t communicator, std::chrono::milliseconds limit) {
    std::unique_lock lock(mutex_);
    news_.wait_for(lock, limit, [&] { return expelled_ || decided_.contains(communicator); });
    const auto found = decided_.find(communicator);
    if (found == decided_.end()) return expelled_;
    Notice next = std::move(found->second.front());
    found->second.pop_front();
    if (found->second.empty()) decided_.erase(found);
    return next;
  }

 private:
  std::mutex mutex_;
  std::condition_variable news_;
  std::map<std::uint64_t, std::deque<Notice>> decided_;  // by communicator
  std::optional<Notice> expelled_;
};

}  // namespace tutti::internal
