#include "transport/shm/distance.h"

#include <emmintrin.h>

#include <algorithm>
#include <chrono>
#include <limits>

#include "memory/between_cores.h"

namespace tutti::internal::shm {
namespace {

std::int64_t now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

// What two readings of the clock take, which some clocks make long.
std::int64_t ns_of_clock() {
  static const std::int64_t least = [] {
    std::int64_t shortest = std::numeric_limits<std::int64_t>::max();
    for (int i = 0; i < 16; ++i) {
      const std::int64_t start = now_ns();
      shortest = std::min(shortest, now_ns() - start);
    }
    return shortest;
  }();
  return least;
}

}  // namespace

// The fence waits for this core's own earlier writes, so that the exchange waits for the line alone. An exchange: a
// compiler may make a load of `line |= 0`. Nobody else writes to the line.
void Distance::fetch(std::atomic<std::uint64_t>& line) {
  unlooked_bytes_ = 0;
  const std::uint64_t value = line.load(std::memory_order_relaxed);
  const std::int64_t clock = ns_of_clock();
  _mm_mfence();
  const std::int64_t start = now_ns();
  line.exchange(value, std::memory_order_relaxed);
  judge(now_ns() - start - clock);
}

void Distance::judge(std::int64_t ns) {
  slowness_ = std::clamp(slowness_ + (ns > between_cores().far_ns ? kSlow : -1), 0, kMax);
}

}  // namespace tutti::internal::shm
