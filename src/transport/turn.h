// Counts a rank's turns: odd while it may be touching what peers have lent it (Transport::begin_turn).
#pragma once

#include <atomic>
#include <cstdint>

namespace tutti::internal {

class Turn {
 public:
  // One thread. A peer that has taken something back and passed a barrier that this thread passes too, either sees the
  // turn that may have missed it, or the turn sees that it is gone.
  void begin() {
    count_.store(count_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    std::atomic_signal_fence(std::memory_order_seq_cst);
  }
  // Likewise, where peers make no barrier for this thread. On x86 an atomic addition is a full barrier. Not a fence:
  // ThreadSanitizer does not know those.
  void begin_with_barrier() { count_.fetch_add(1, std::memory_order_seq_cst); }
  void end() { count_.store(count_.load(std::memory_order_relaxed) + 1, std::memory_order_release); }

  // Any thread.
  std::uint64_t count() const { return count_.load(std::memory_order_acquire); }
  // Whether the turn that was on at `count` is over; true if none was.
  bool is_over(std::uint64_t count) const { return count % 2 == 0 || this->count() != count; }

 private:
  std::atomic<std::uint64_t> count_{0};
};

}  // namespace tutti::internal
