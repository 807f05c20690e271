#include "transport/shm/ring_writer.h"

#include <algorithm>
#include <chrono>

#include "memory/copy.h"
#include "transport/shm/lane.h"

namespace tutti::internal::shm {
namespace {

// Near cores take 0.05 to 0.15 ns a byte, cores without a shared cache 0.35 to 0.5 (AMD EPYC, 2.6 GHz).
constexpr double kFarNsPerByte = 0.25;

std::int64_t now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

}  // namespace

void RingWriter::copy(std::byte* to, const std::byte* from, std::size_t bytes) {
  if (bytes < kMinBytes) {
    copy_bytes(to, from, bytes);
  } else if (passes_cache(bytes) && ++unproven_ < kBetweenProbes) {
    copy_bytes(to, from, bytes, true);
  } else {
    const std::int64_t start = now_ns();
    copy_bytes(to, from, bytes);
    judge(bytes, now_ns() - start);
  }
}

// The first time round the ring its pages are made: that is slow however near the peer is.
void RingWriter::judge(std::size_t bytes, std::int64_t ns) {
  unproven_ = 0;
  if (warm_bytes_ < kMaxRingBytes) {
    warm_bytes_ += bytes;
    return;
  }
  const bool slow = static_cast<double>(ns) > kFarNsPerByte * static_cast<double>(bytes);
  slowness_ = std::clamp(slowness_ + (slow ? 1 : -1), 0, kMax);
}

}  // namespace tutti::internal::shm
