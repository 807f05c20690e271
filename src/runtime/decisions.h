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
#include <vector>

#include "control/control.h"

namespace tutti::internal {

// Thread-safe.
class Decisions {
 public:
  // Notice{decided} or {absent}, of a communicator that is there: kept until somebody waits for it. {expelled}: nothing
  // else comes any more.
  void heard(const Notice& notice) {
    const std::lock_guard lock(mutex_);
    if (notice.kind == Notice::Kind::decided)
      decided_[{notice.communicator, notice.on}].push_back(notice);
    else if (notice.kind == Notice::Kind::expelled)
      expelled_ = notice;
    else if (const auto recall = recalls_.find({notice.communicator, notice.on});
             recall != recalls_.end() && recall->second.number == notice.sequence)
      recall->second.absent = notice.ranks;
    news_.notify_all();
  }

  // Blocks until the next such decision on that communicator is there, and takes it; or the word that this rank is
  // expelled. Nothing: not within `limit`, or `is_in_vain()` has become true before.
  template <class IsInVain>
  std::optional<Notice> wait(std::uint64_t communicator, Vote::On on, std::chrono::milliseconds limit,
                             IsInVain&& is_in_vain) {
    const About about{communicator, on};
    std::unique_lock lock(mutex_);
    news_.wait_for(lock, limit, [&] { return expelled_ || decided_.contains(about) || is_in_vain(); });
    const auto found = decided_.find(about);
    if (found == decided_.end()) return expelled_;
    Notice next = std::move(found->second.front());
    found->second.pop_front();
    if (found->second.empty()) decided_.erase(found);
    return next;
  }
  // Before Control::recall(): its number. A late answer to an earlier one does not count.
  std::uint32_t begin_recall(std::uint64_t communicator, Vote::On on) {
    const std::lock_guard lock(mutex_);
    recalls_.insert_or_assign({communicator, on}, Recall{++last_recall_, {}});
    return last_recall_;
  }
  // Blocks until the answer is there: ranks of the job. None: not within `limit`, or the vote is decided.
  std::vector<std::int32_t> wait_for_absent(std::uint64_t communicator, Vote::On on, std::chrono::milliseconds limit) {
    const About about{communicator, on};
    std::unique_lock lock(mutex_);
    const auto answer = [&] {
      const auto recall = recalls_.find(about);
      return recall == recalls_.end() ? std::nullopt : recall->second.absent;
    };
    news_.wait_for(lock, limit, [&] { return answer() || decided_.contains(about) || expelled_; });
    return answer().value_or(std::vector<std::int32_t>());
  }
  // The communicator is no more: nobody waits.
  void forget(std::uint64_t communicator) {
    const std::lock_guard lock(mutex_);
    const auto is_of_it = [&](const auto& entry) { return entry.first.first == communicator; };
    std::erase_if(decided_, is_of_it);
    std::erase_if(recalls_, is_of_it);
  }
  // It may have become true.
  void look_again() {
    const std::lock_guard lock(mutex_);
    news_.notify_all();
  }

 private:
  using About = std::pair<std::uint64_t, Vote::On>;  // a communicator, and what is voted on
  struct Recall {
    std::uint32_t number = 0;
    std::optional<std::vector<std::int32_t>> absent;
  };

  std::mutex mutex_;
  std::condition_variable news_;
  std::map<About, std::deque<Notice>> decided_;
  std::map<About, Recall> recalls_;
  std::uint32_t last_recall_ = 0;
  std::optional<Notice> expelled_;
};

}  // namespace tutti::internal
