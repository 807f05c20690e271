#pragma once

#include <cstddef>

namespace tutti::internal {

inline constexpr std::size_t kUsualCacheBytes = 32 << 20;
// A virtual machine may report the whole cache of a host that it shares with others: 480 MiB, where messages of 16 MiB
// were best written past it (a round trip between 2 ranks: 2770 us, not 3530).
inline constexpr std::size_t kMostCacheBytes = 64 << 20;

inline constexpr std::size_t kNever = ~std::size_t{0};

// What a plan takes into account of the machine.
struct Host {
  std::size_t cache_bytes = kUsualCacheBytes;  // of the largest cache; kNever: no call outgrows it
  bool crowded = false;                        // it has fewer processors than ranks
  // As of BetweenCores. split_*from: no shorter message is copied by both ranks, in memory that both map
  // (SharedCopier::split) or in other memory (OrdinaryCopier::split). reads_*_from: no shorter one is left to the peer
  // (OrdinaryCopier::peer). copies_are_dear: more messages of symmetric memory are lent, fewer copied.
  // fetches_to_write_up_to: longer calls have no ReceiveHints::fetches_to_write (but see mark_fetches()).
  std::size_t split_shared_from = kNever, split_from = kNever;
  std::size_t reads_moved_from = 0, reads_sent_from = 0, reads_combined_from = 0;
  bool copies_are_dear = false;
  std::size_t fetches_to_write_up_to = 0;
};

}  // namespace tutti::internal
