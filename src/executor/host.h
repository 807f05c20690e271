// What a plan takes into account of the machine.
#pragma once

#include <cstddef>

#include "memory/between_cores.h"

namespace tutti::internal {

inline constexpr std::size_t kUsualCacheBytes = 32 << 20;
// A virtual machine may report the whole cache of a host that it shares with others: 480 MiB, where messages of 16 MiB
// were best written past it (a round trip between 2 ranks: 2770 us, not 3530).
inline constexpr std::size_t kMostCacheBytes = 64 << 20;

inline constexpr std::size_t kNever = ~std::size_t{0};

struct Host {
  // Of the largest cache. kNever: no call outgrows it, or BetweenCores::past_cache_pays is false.
  std::size_t cache_bytes = kUsualCacheBytes;
  bool crowded = false;  // it has fewer processors than ranks
  // split_from: kNever where the system does not let ranks write each other's ordinary memory.
  BetweenCores cores;
};

}  // namespace tutti::internal
