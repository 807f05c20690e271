// How a rank waits: spin, then yield, then sleep in the kernel. Ranks that have a core each see each other within
// nanoseconds; ranks that share cores give way at once.
#pragma once

#include <chrono>
#include <cstdint>

namespace tutti::runtime {

enum class Pause : std::uint8_t { spin, yield, sleep };

class Patience {
 public:
  using Clock = std::chrono::steady_clock;

  explicit Patience(bool crowded) : crowded_(crowded) {}

  // What to do now, having found nothing to do. Reads the clock only once in a while: `looked` says when it did.
  Pause next(bool& looked) {
    ++idle_;
    const std::uint32_t spins = crowded_ ? kCrowdedSpins : kSpins;
    looked = idle_ % kSpinsBetweenLooks == 0 || idle_ > spins;
    if (!looked) return Pause::spin;
    now_ = Clock::now();
    if (idle_ == kSpinsBetweenLooks || since_ == Clock::time_point{}) since_ = now_;
    if (idle_ <= spins) return Pause::spin;
    return now_ - since_ < kYieldFor ? Pause::yield : Pause::sleep;
  }

  // Something moved.
  void reset() {
    idle_ = 0;
    since_ = {};
  }

  Clock::time_point now() const { return now_; }  // as of the last look

 private:
  static constexpr std::uint32_t kSpins = 16 << 10;
  static constexpr std::uint32_t kCrowdedSpins = 8;
  static constexpr std::uint32_t kSpinsBetweenLooks = 64;
  static constexpr std::chrono::microseconds kYieldFor{2'000};

  const bool crowded_;
  std::uint32_t idle_ = 0;
  Clock::time_point since_{}, now_{};
};

}  // namespace tutti::runtime
