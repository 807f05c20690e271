#include "control/call_times.h"

#include <x86intrin.h>

#include <chrono>
#include <cmath>
#include <memory>
#include <new>

namespace tutti::internal {
namespace {

std::int64_t steady_now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

}  // namespace

// --- what a reading means

TickScale::TickScale() : ticks_(__rdtsc()), steady_ns_(steady_now_ns()) {}

TickScale::Now TickScale::now() const {
  Now now;
  now.ticks_ = __rdtsc();
  const std::int64_t steady_ns = steady_now_ns();
  now.wall_us_ =
      std::chrono::duration_cast<std::chrono::microseconds>(std::chrono::system_clock::now().time_since_epoch())
          .count();
  const auto ticks = static_cast<double>(now.ticks_ - ticks_);
  now.us_per_tick_ = ticks > 0 ? static_cast<double>(steady_ns - steady_ns_) / 1000 / ticks : 0;
  return now;
}

std::int64_t TickScale::Now::wall_us(std::uint64_t ticks) const {
  return wall_us_ + std::llround(static_cast<double>(static_cast<std::int64_t>(ticks - ticks_)) * us_per_tick_);
}

// --- the ring

struct CallTimes::Ring {
  explicit Ring(std::uint32_t slots) : count(slots), all(std::make_unique<Slot[]>(slots)) {}
  const std::uint32_t count;
  const std::unique_ptr<Slot[]> all;
};

CallTimes::CallTimes() : short_(std::make_unique<Ring>(kFirst)), ring_(short_.get()) {}
CallTimes::~CallTimes() = default;

// The places of the next calls, where the ring is full or the clock is new. Without memory for a long ring the short
// one begins anew, and remains: the place of a call follows from its number.
std::span<CallTimes::Slot> CallTimes::turn() {
  const auto slots_of = [](const Ring& ring) { return std::span(ring.all.get(), ring.count); };
  if (turns_ == 1) try {
      long_ = std::make_unique<Ring>(kKept);
      for (std::uint32_t i = 0; i < kFirst; ++i) {
        long_->all[i].entered.take(short_->all[i].entered);
        long_->all[i].completed.take(short_->all[i].completed);
      }
      ring_.store(long_.get(), std::memory_order_release);
      turns_ = 2;
      return slots_of(*long_).subspan(kFirst);
    } catch (const std::bad_alloc&) {
    }
  if (turns_ < 2) ++turns_;
  return slots_of(long_ != nullptr ? *long_ : *short_);
}

void CallTimes::Clock::turn() {
  const std::span<Slot> places = times_.turn();
  next_ = places.data();
  end_ = next_ + places.size();
}

std::uint32_t CallTimes::View::held() const { return ring_->count; }

CallTimes::Times CallTimes::View::at(std::uint32_t sequence) const {
  const Slot& slot = ring_->all[(sequence - 1) % ring_->count];
  return {slot.entered.ticks(), slot.completed.ticks()};
}

CallTimes::View CallTimes::view() const {
  View view;
  view.ring_ = ring_.load(std::memory_order_acquire);
  return view;
}

}  // namespace tutti::internal
