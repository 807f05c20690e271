#include "transport/shm/ring_writer.h"

#include <algorithm>
#include <chrono>
#include <cstring>

#include "transport/shm/lane.h"

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace tutti::shm {
namespace {

// Near cores take 0.05 to 0.15 ns a byte, cores without a shared cache 0.35 to 0.5 (AMD EPYC, 2.6 GHz).
constexpr double kFarNsPerByte = 0.25;

std::int64_t now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

void copy_past_cache(std::byte* to, const std::byte* from, std::size_t bytes) {
  std::size_t i = 0;
#if defined(__SSE2__)
  for (; i + 64 <= bytes; i += 64) {
    const auto* source = reinterpret_cast<const __m128i*>(from + i);
    auto* target = reinterpret_cast<__m128i*>(to + i);
    const __m128i a = _mm_loadu_si128(source), b = _mm_loadu_si128(source + 1), c = _mm_loadu_si128(source + 2),
                  d = _mm_loadu_si128(source + 3);
    _mm_stream_si128(target, a);
    _mm_stream_si128(target + 1, b);
    _mm_stream_si128(target + 2, c);
    _mm_stream_si128(target + 3, d);
  }
  _mm_sfence();
#endif
  std::memcpy(to + i, from + i, bytes - i);
}

}  // namespace

void RingWriter::copy(std::byte* to, const std::byte* from, std::size_t bytes) {
  if (bytes < kLeastBytes) {
    std::memcpy(to, from, bytes);
  } else if (passes_cache(bytes) && ++unproven_ < kBetweenProbes) {
    copy_past_cache(to, from, bytes);
  } else {
    const std::int64_t start = now_ns();
    std::memcpy(to, from, bytes);
    judge(bytes, now_ns() - start);
  }
}

// The first time round the ring its pages are made: that is slow however near the peer is.
void RingWriter::judge(std::size_t bytes, std::int64_t ns) {
  unproven_ = 0;
  if (warm_bytes_ < kMostRingBytes) {
    warm_bytes_ += bytes;
    return;
  }
  const bool slow = static_cast<double>(ns) > kFarNsPerByte * static_cast<double>(bytes);
  slowness_ = std::clamp(slowness_ + (slow ? 1 : -1), 0, kMost);
}

}  // namespace tutti::shm
