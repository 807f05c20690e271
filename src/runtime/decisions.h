// What the hub has decided on the votes of this rank's communicators.
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
class Decisions {
 public:
  // Notice{decided}: kept until somebody waits for it. {expelled}: nothing else comes any more.
  void heard(const Notice& notice) {
    const std::lock_guard lock(mutex_);
    if (notice.kind == Notice::Kind::decided)
      decided_[notice.communicator].push_back(notice);
    else
      expelled_ = notice;
    news_.notify_all();
  }

  // Blocks until the next decision on that communicator is there, and takes it; or the word that this rank is expelled.
  // Nothing: not within `limit`, or `is_in_vain()` has become true before.
  template <class IsInVain>
  std::optional<Notice> wait(std::uint64_t communicator, std::chrono::milliseconds limit, IsInVain&& is_in_vain) {
    std::unique_lock lock(mutex_);
    news_.wait_for(lock, limit, [&] { return expelled_ || decided_.contains(communicator) || is_in_vain(); });
    const auto found = decided_.find(communicator);
    if (found == decided_.end()) return expelled_;
    Notice next = std::move(found->second.front());
    found->second.pop_front();
    if (found->second.empty()) decided_.erase(found);
    return next;
  }
  // It may have become true.
  void look_again() {
    const std::lock_guard lock(mutex_);
    news_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable news_;
  std::map<std::uint64_t, std::deque<Notice>> decided_;  // by communicator
  std::optional<Notice> expelled_;
};

}  // namespace tutti::internal
