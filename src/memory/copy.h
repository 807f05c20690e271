// Copies of bytes that are large, or go where another core reads them.
#pragma once

#include <cstddef>
#include <cstring>

namespace tutti::internal {

// Shorter messages gain nothing if their lines are fetched for writing (copy_fetching()).
inline constexpr std::size_t kLeastFetchedBytes = 4 << 10;

// to[0, bytes) = from[0, bytes), which do not overlap. As memcpy; but not by `rep movsb` where the processor has AVX2,
// AVX-512 or NEON. The C library uses that instruction from 2 KiB on, and some processors (AMD, from Zen 3 on) are up
// to 20 times slower at it where the target does not start on a cache line, as memory from malloc does not
// (https://lunnova.dev/articles/ryzen-slow-short-rep-mov). string_copy.h is for where it is quicker.
// past_cache: non-temporal stores, for what this core will not read again; a hint, and none on x86-64 without AVX2.
void copy_bytes(std::byte* to, const std::byte* from, std::size_t bytes, bool past_cache = false);

// The same by a core that writes to from[0, bytes) next, and is the only one that does: the lines are fetched for that,
// if there are kLeastFetchedBytes. BetweenCores::fetches_to_write_up_to says where it pays.
void copy_fetching(std::byte* to, const std::byte* from, std::size_t bytes);

// The same of a few bytes, which may be none. Of eight bytes without a call.
inline void copy_short(std::byte* to, const std::byte* from, std::size_t bytes) {
  if (bytes == 8) {
    std::memcpy(to, from, 8);
  } else if (bytes != 0) {
    std::memcpy(to, from, bytes);
  }
}

}  // namespace tutti::internal
