#include "memory/targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "memory/copy.cc"
#include <hwy/cache_control.h>
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <cstddef>
#include <cstdint>

#include "memory/between_cores.h"
#include "memory/fetch.h"

HWY_BEFORE_NAMESPACE();
namespace tutti::internal {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

using Widest = hn::ScalableTag<std::uint8_t>;
using Narrower = hn::CappedTag<std::uint8_t, 32>;

enum class Way { usual, past_cache, fetching };

// Whole rounds of four vectors, to a target that is aligned to vectors; returns the bytes copied.
template <Way kWay, class D>
std::size_t copy_rounds(std::uint8_t* HWY_RESTRICT to, const std::uint8_t* HWY_RESTRICT from, std::size_t bytes) {
  const D d;
  const std::size_t lanes = hn::Lanes(d);
  const auto* const source = reinterpret_cast<const std::byte*>(from);
  std::size_t i = 0;
  for (; bytes - i >= 4 * lanes; i += 4 * lanes) {
    if constexpr (kWay == Way::fetching) fetch_ahead_to_write<4 * hn::MaxLanes(d)>(source, i, bytes);
    const auto a = hn::LoadU(d, from + i), b = hn::LoadU(d, from + i + lanes);
    const auto c = hn::LoadU(d, from + i + 2 * lanes), e = hn::LoadU(d, from + i + 3 * lanes);
    if constexpr (kWay == Way::past_cache) {
      hn::Stream(a, d, to + i);
      hn::Stream(b, d, to + i + lanes);
      hn::Stream(c, d, to + i + 2 * lanes);
      hn::Stream(e, d, to + i + 3 * lanes);
    } else {
      hn::Store(a, d, to + i);
      hn::Store(b, d, to + i + lanes);
      hn::Store(c, d, to + i + 2 * lanes);
      hn::Store(e, d, to + i + 3 * lanes);
    }
  }
  if constexpr (kWay == Way::past_cache) hwy::FlushStream();
  return i;
}

// Nothing where there are no vectors, so that the C library copies all. (Under ThreadSanitizer there are none, and each
// byte would call the sanitizer twice.)
std::size_t copy_here(std::uint8_t* to, const std::uint8_t* from, std::size_t bytes, bool past_cache) {
  if constexpr (HWY_TARGET == HWY_SCALAR || HWY_TARGET == HWY_EMU128) return 0;
  if (past_cache) return copy_rounds<Way::past_cache, Widest>(to, from, bytes);
  if (between_cores().copies_by_narrow_vectors) return copy_rounds<Way::usual, Narrower>(to, from, bytes);
  return copy_rounds<Way::usual, Widest>(to, from, bytes);
}

std::size_t copy_fetching_here(std::uint8_t* to, const std::uint8_t* from, std::size_t bytes) {
  if constexpr (HWY_TARGET == HWY_SCALAR || HWY_TARGET == HWY_EMU128) return 0;
  return copy_rounds<Way::fetching, Narrower>(to, from, bytes);
}

}  // namespace HWY_NAMESPACE
}  // namespace tutti::internal
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

#include <algorithm>
#include <cstring>

#include "memory/copy.h"

namespace tutti::internal {
namespace {

HWY_EXPORT(copy_here);
HWY_EXPORT(copy_fetching_here);

constexpr std::size_t kMemcpyBytes = 2 << 10;  // up to here the C library has a loop of its own, whatever the vectors
constexpr std::size_t kLineBytes = 64;

// rounds(to, from, bytes) gets a target that begins a line, and returns how much it has copied. The rest is copied
// here.
template <class Rounds>
void copy_around(std::byte* to, const std::byte* from, std::size_t bytes, const Rounds& rounds) {
  std::size_t done = std::min(bytes, -reinterpret_cast<std::uintptr_t>(to) % kLineBytes);
  if (done > 0) std::memcpy(to, from, done);
  done += rounds(reinterpret_cast<std::uint8_t*>(to + done), reinterpret_cast<const std::uint8_t*>(from + done),
                 bytes - done);
  if (done < bytes) std::memcpy(to + done, from + done, bytes - done);
}

}  // namespace

void copy_bytes(std::byte* to, const std::byte* from, std::size_t bytes, bool past_cache) {
  if (bytes > kMemcpyBytes || past_cache) {
    copy_around(to, from, bytes, [&](auto* to_line, auto* of_line, std::size_t left) {
      return HWY_DYNAMIC_DISPATCH(copy_here)(to_line, of_line, left, past_cache);
    });
  } else if (bytes > 0) {
    std::memcpy(to, from, bytes);
  }
}

void copy_fetching(std::byte* to, const std::byte* from, std::size_t bytes) {
  if (bytes < kLeastFetchedBytes) return copy_bytes(to, from, bytes);
  copy_around(to, from, bytes, [](auto* to_line, auto* of_line, std::size_t left) {
    return HWY_DYNAMIC_DISPATCH(copy_fetching_here)(to_line, of_line, left);
  });
}

}  // namespace tutti::internal
#endif
