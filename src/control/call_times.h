// When the last calls of a communicator were entered and completed.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>

namespace tutti::internal {

// Readings of the processor's time stamp counter, and what they mean: two clocks that were read together twice, when
// this was made and when somebody asks.
class TickScale {
 public:
  TickScale();
  // Of the time between the two: what the wall clock showed at a reading, in microseconds since 1970.
  class Now {
   public:
    std::int64_t wall_us() const { return wall_us_; }
    std::int64_t wall_us(std::uint64_t ticks) const;

   private:
    friend class TickScale;
    std::uint64_t ticks_ = 0;
    std::int64_t wall_us_ = 0;
    double us_per_tick_ = 0;
  };
  Now now() const;

 private:
  std::uint64_t ticks_;
  std::int64_t steady_ns_;
};

// Of one communicator. Its calls are numbered from 1. One writer, the Clock; any readers; no lock. A communicator that
// makes few calls has a short ring.
class CallTimes {
  struct Ring;
  struct Slot;

 public:
  static constexpr std::uint32_t kFirst = 64, kKept = 1024;  // calls that a ring holds; powers of 2

  CallTimes();
  ~CallTimes();

  // Writes the times. The owner of the CallTimes keeps it where it is at hand, because it is used twice a call.
  class Clock {
   public:
    explicit Clock(CallTimes& times) : times_(times) { turn(); }
    // The next call is entered; it is completed. A call that is entered again begins anew.
    void enters() { next_->entered.take(); }
    void completes() {
      next_->completed.take();
      pass();
    }
    // It took so little that it counts as completed when it was entered. A reading takes 10 ns, a short broadcast 70.
    void completes_at_once() {
      next_->completed.take(next_->entered);
      pass();
    }

   private:
    void pass() {
      if (++next_ == end_) [[unlikely]]
        turn();
    }
    [[gnu::cold]] void turn();

    Slot* next_ = nullptr;
    Slot* end_ = nullptr;
    CallTimes& times_;
  };

  // For readers. How many calls the ring holds now, and of one of them: 0 is no time. What it says is true as long as
  // the writer has not come to call `sequence` + held() when the reader looks afterwards.
  struct Times {
    std::uint64_t entered = 0, completed = 0;
  };
  class View {
   public:
    std::uint32_t held() const;
    Times at(std::uint32_t sequence) const;

   private:
    friend class CallTimes;
    const Ring* ring_ = nullptr;
  };
  View view() const;

 private:
  // In two halves, as the processor gives it. Whoever has seen the number of the call sees both.
  struct Stamp {
    std::atomic<std::uint32_t> low{0}, high{0};
    void take() {
      std::uint32_t a, d;
      asm volatile("rdtsc" : "=a"(a), "=d"(d));
      low.store(a, std::memory_order_relaxed);
      high.store(d, std::memory_order_relaxed);
    }
    void take(const Stamp& other) {
      low.store(other.low.load(std::memory_order_relaxed), std::memory_order_relaxed);
      high.store(other.high.load(std::memory_order_relaxed), std::memory_order_relaxed);
    }
    std::uint64_t ticks() const {
      return std::uint64_t{high.load(std::memory_order_acquire)} << 32 | low.load(std::memory_order_acquire);
    }
  };
  struct Slot {
    Stamp entered, completed;
  };

  std::span<Slot> turn();

  std::unique_ptr<Ring> short_, long_;  // readers may still look at the short one when there is a long one
  std::atomic<const Ring*> ring_;
  int turns_ = 0;  // at most 2
};

}  // namespace tutti::internal
