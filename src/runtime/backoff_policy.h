// How a rank waits: spin, then yield, then sleep in the kernel. Ranks that have a core each see each other within
// nanoseconds; ranks that share cores give way at once.
#pragma once

#include <chrono>
#include <cstdint>
#include <utility>

namespace tutti::internal {

enum class Pause : std::uint8_t { spin, yield, sleep };

// At the clock, by a rank that waits.
struct Look {
  using Clock = std::chrono::steady_clock;
  Clock::time_point at{}, since{};  // the first of this wait
  Clock::duration away{};           // since the one before in this wait, but for a sleep
  bool is_last = false;             // the wait is over
};

class BackoffPolicy {
 public:
  using Clock = Look::Clock;

  // Where a rank shares its processor it spins once before it yields or sleeps. Each spin looks at all peers, and the
  // rank that has what they wait for may need the processor meanwhile. 8 crowded ranks on 2 cores, all_gather of 4 KiB:
  // 17.5 us with 8 spins, 14.4 with 3, 13.3 with 1, 13.7 with none; 3 ranks, all_reduce of 64 KiB between cores that
  // share no cache: 21 us with 8, 19 with 1, 27 with none. A thread of a rank that may have a processor of its own, but
  // shares the rank's calls with another thread, spins more often: to sleep costs it more.
  static constexpr std::uint32_t kCrowdedSpins = 1, kSpinsBesideThread = 8;

  // A rank that has waited so long sleeps where it yielded before.
  static constexpr std::chrono::microseconds kYieldFor{2'000};

  explicit BackoffPolicy(bool crowded, Clock::time_point no_yield_before = {},
                         std::uint32_t crowded_spins = kCrowdedSpins)
      : crowded_spins_(crowded_spins), crowded_(crowded), no_yield_before_(no_yield_before) {}

  // What to do now, having found nothing to do. Reads the clock only once in a while: `looked` says when it did.
  Pause next(bool& looked) {
    ++idle_;
    const std::uint32_t spins = crowded_ ? crowded_spins_ : kSpins;
    looked = idle_ % kSpinsBetweenLooks == 0 || idle_ > spins;
    if (!looked) return Pause::spin;
    look_at_clock();
    slept_ = idle_ > spins && (look_.at - look_.since >= kYieldFor || look_.at < no_yield_before_);
    if (slept_) return Pause::sleep;
    return idle_ <= spins ? Pause::spin : Pause::yield;
  }

  // Something moved. True where that took long, or a yield: then this was another look.
  bool look_back() {
    if (idle_ < (crowded_ ? crowded_spins_ + 1 : kLongWait)) return false;
    look_at_clock();
    look_.is_last = true;
    return true;
  }
  void reset() {
    idle_ = 0;
    look_.since = {};
  }

  // It has turned out while this rank waits whether it shares cores, and until when it should rather sleep than yield.
  void set_crowded(bool crowded, Clock::time_point no_yield_before) {
    crowded_ = crowded;
    no_yield_before_ = no_yield_before;
  }

  const Look& look() const { return look_; }  // the last one
  Clock::time_point now() const { return look_.at; }

 private:
  void look_at_clock() {
    const Clock::time_point before = std::exchange(look_.at, Clock::now());
    const bool is_first = look_.since == Clock::time_point{};
    if (is_first) look_.since = look_.at;
    look_.away = is_first || slept_ ? Clock::duration{} : look_.at - before;
    look_.is_last = false;
  }

  static constexpr std::uint32_t kSpins = 16 << 10;
  static constexpr std::uint32_t kSpinsBetweenLooks = 64;
  static constexpr std::uint32_t kLongWait = 4 * kSpinsBetweenLooks;

  const std::uint32_t crowded_spins_;
  bool crowded_, slept_ = false;
  Clock::time_point no_yield_before_;
  std::uint32_t idle_ = 0;
  Look look_;
};

}  // namespace tutti::internal
