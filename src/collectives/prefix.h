// Prefixes of the ranks' inputs in canonical order: what scan and exclusive_scan share.
#pragma once

#include "schedule/schedule.h"

namespace tutti::internal {

// What a rank ends with: T[0, rank] of the inputs up to its own, or T[0, rank) of those before it.
enum class Prefix { inclusive, exclusive };

// scan/one_shot.cc, scan/recursive_doubling.cc.
Schedule prefix_in_one_shot(int rank, int ranks, Prefix prefix);
Schedule prefix_by_doubling(int rank, int ranks, Prefix prefix);

}  // namespace tutti::internal
