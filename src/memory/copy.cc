#include "memory/targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "memory/copy.cc"
#include <hwy/cache_control.h>
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <cstddef>
#include <cstdint>

#include "memory/between_cores.h"

HWY_BEFORE_NAMESPACE();
namespace tutti::internal {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

using Widest = hn::ScalableTag<std::uint8_t>;
using Narrower = hn::CappedTag<std::uint8_t, 32>;

// Whole rounds of four vectors, to a target that is aligned to vectors; returns the bytes copied.
template <bool kPastCache, class D>
std::size_t copy_rounds(std::uint8_t* HWY_RESTRICT to, const std::uint8_t* HWY_RESTRICT from, std::size_t bytes) {
  const D d;
  const std::size_t lanes = hn::Lanes(d);
  std::size_t i = 0;
  for (; bytes - i >= 4 * lanes; i += 4 * lanes) {
    const auto a = hn::LoadU(d, from + i), b = hn::LoadU(d, from + i + lanes);
    const auto c = hn::LoadU(d, from + i + 2 * lanes), e = hn::LoadU(d, from + i + 3 * lanes);
    if constexpr (kPastCache) {
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
  if constexpr (kPastCache) hwy::FlushStream();
  return i;
}

// Nothing where there are no vectors, so that the C library copies all. (Under ThreadSanitizer there are none, and each
// byte would call the sanitizer twice.)
std::size_t copy_here(std::uint8_t* to, const std::uint8_t* from, std::size_t bytes, bool past_cache) {
  if constexpr (HWY_TARGET == HWY_SCALAR || HWY_TARGET == HWY_EMU128) return 0;
  if (past_cache) return copy_rounds<true, Widest>(to, from, bytes);
  if (between_cores().copies_by_narrow_vectors) return copy_rounds<false, Narrower>(to, from, bytes);
  return copy_rounds<false, Widest>(to, from, bytes);
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

constexpr std::size_t kMemcpyBytes = 2 << 10;  // up to here the C library has a loop of its own, whatever the vectors
constexpr std::size_t kLineBytes = 64;

}  // namespace

void copy_bytes(std::byte* to, const std::byte* from, std::size_t bytes, bool past_cache) {
  std::size_t done = 0;
  if (bytes > kMemcpyBytes || past_cache) {
    done = std::min(bytes, -reinterpret_cast<std::uintptr_t>(to) % kLineBytes);
    if (done > 0) std::memcpy(to, from, done);
    done +=
        HWY_DYNAMIC_DISPATCH(copy_here)(reinterpret_cast<std::uint8_t*>(to + done),
                                        reinterpret_cast<const std::uint8_t*>(from + done), bytes - done, past_cache);
  }
  if (done < bytes) std::memcpy(to + done, from + done, bytes - done);
}

}  // namespace tutti::internal
#endif
