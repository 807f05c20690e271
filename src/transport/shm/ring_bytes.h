// How long the rings of a host's lanes are, and how much of them is used.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>

#include "transport/shm/lane.h"

namespace tutti::internal::shm {

// How much of a ring is used.
struct RingBytes {
  std::size_t both_ways;  // while the two ranks write to each other
  std::size_t one_way;    // while one only writes, and the other only reads: the whole ring
  // While they write to each other, each fragment goes to the first gap, so that little of the ring is in use.
  bool is_packed = false;
  // While one only writes, it cuts messages of less than about 1 MiB into fragments that are shorter than others
  // (one_way_fragment_bytes()).
  bool has_short_fragments = false;
};

// Of each ring among `ranks` ranks of one host. A cache line that the peer has read comes back slowly while it lies in
// the peer's second-level cache, and quickly once it has gone to the cache that both share. So a ring is larger than
// the second level, as far as all rings together (8 MiB) fit the shared cache. (2 ranks, own buffers, 2 MiB: 442 us
// with 256 KiB, 150 with 2 MiB; 8 ranks on 2 cores: 2.4 ms against 4.0.) The reader of a longer ring also keeps more of
// it (Kept), which counts most between cores that share no cache. (4 crowded ranks of a Zen 4 on such cores,
// reduce_scatter of 4 MiB: 1380 us with 256 KiB, 670 with 512. bench/results/2026-11-27-crowded-ranks.md has more.)
//
// While a rank only sends, its ring may be longer again: about as many such rings as there are ranks are in use at a
// time, so these have 6 MiB together. (4 ranks on 2 cores of a Zen 4, broadcast with rings of 256 KiB, 512 KiB, 1 and 2
// MiB: 16 KiB 5.9, 4.1, 3.1 and 2.2 us; 64 KiB 23, 15, 9.3 and 7.2. Not measured where more than two ranks have a core
// each.)
//
// Where even the shortest rings do not fit the shared cache, crowded ranks pack them. (8 ranks on 2 cores that shared
// no cache: reduce_scatter of 1 MiB 905 us and 357, all_reduce of 2 MiB 1900 and 1640, all_to_all of 1 MiB 588 and 501.
// But 4 ranks on cores that share one, whose rings fit: all_reduce of 128 KiB 33 and 43.)
inline RingBytes ring_bytes_for(std::size_t ranks, bool crowded) {
  if (ranks < 2) return {kMinRingBytes, kMinRingBytes};
  const auto ring = [](std::size_t all, std::size_t rings) {
    return std::clamp(std::bit_floor(all / rings), kMinRingBytes, kMaxRingBytes);
  };
  constexpr std::size_t kAll = std::size_t{8} << 20, kAllOneWay = std::size_t{6} << 20;
  const std::size_t rings = ranks * (ranks - 1);
  return {ring(kAll, rings), ring(kAllOneWay, ranks - 1), crowded && rings * kMinRingBytes > kAll,
          ranks == 2 && !crowded};
}

}  // namespace tutti::internal::shm
