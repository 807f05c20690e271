// The two halves of all_reduce/ring.cc, where they are defined; reduce_scatter/ring.cc and all_gather/ring.cc use one
// each.
#pragma once

#include "schedule/builder.h"

namespace tutti::internal {

// Afterwards output slice `rank` is combined and finished on each rank; with `pass_on` it is also sent to the next
// rank.
void ring_reduce(Builder& builder, int rank, int n, int chunks, bool pass_on);

// Each rank has sent output slice `rank` to the next one: the n - 1 others come round.
void ring_gather(Builder& builder, int rank, int n, int chunks);

}  // namespace tutti::internal
