// What the control plane has told this rank of the others, and which of its communicators is to hear of it.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "runtime/decisions.h"
#include "runtime/job_member.h"
#include "runtime/partings.h"

namespace tutti::internal {

// Thread-safe.
class Notices {
 public:
  Notices(int ranks, const Log& log) : left_(std::make_unique<std::atomic<bool>[]>(ranks)), partings_(log) {}

  // On the control thread.
  void heard(const Notice& notice);

  // From then on the member hears what concerns it; at once, what has come before it was made.
  void add(JobMember& member);
  void remove(JobMember& member);

  bool has_left(int rank) const { return left_[rank].load(std::memory_order_acquire); }
  Partings& partings() { return partings_; }
  Decisions& decisions() { return decisions_; }

  void fail_all_at_exit();
  // Around a fork(), so that the child finds all of this whole.
  void before_fork() { mutex_.lock(); }
  void after_fork_in_parent() { mutex_.unlock(); }
  void after_fork_in_child();

 private:
  static void tell(JobMember& member, const Notice& news);

  const std::unique_ptr<std::atomic<bool>[]> left_;  // by rank
  std::mutex mutex_;                                 // taken inside the engine's lock
  std::vector<JobMember*> members_;
  std::vector<Notice> bad_news_;  // in order; also of communicators that this rank has not made yet
  Partings partings_;
  Decisions decisions_;
};

}  // namespace tutti::internal
