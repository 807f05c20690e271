// In round k every rank tells the one 2^k ahead that it has come, after it has heard from the one 2^(k-1) behind: what
// it tells then speaks for 2^k ranks. After log n rounds it speaks for all.
//
//   round 0:   0 -> 1   1 -> 2   2 -> 3   3 -> 0
//   round 1:   0 -> 2   1 -> 3   2 -> 0   3 -> 1      rank 2 has heard of 1 (round 0), then of 0 and 3 (round 1)
//
// Time: log n alpha
// Restrictions: none. Messages carry nothing: there are no elements.
// Source: Hensgen, Finkel, Manber, "Two algorithms for barrier synchronization", International Journal of Parallel
// Programming 17(1), 1988.
#include "collectives/algorithms.h"
#include "collectives/regions.h"
#include "schedule/builder.h"

namespace tutti::internal {

const AlgorithmClaims algorithms::barrier::dissemination_claims{
    .idea = "in round k each rank tells the one 2^k ahead",
    .canonical = true,
    .several_leaves = true,
    .pipelined = false,
    .messages = "n log n",
    .bytes = "0",
    .rounds = "log n",
};

Schedule algorithms::barrier::dissemination(int rank, const Layout& layout, const Message&) {
  const int n = layout.ranks();
  Builder builder(rank, 1);
  const Region heard = scratch(builder.new_scratch_row());
  for (int distance = 1; distance < n; distance *= 2) {
    builder.send((rank + distance) % n, input());
    builder.reduce({Builder::message((rank - distance + n) % n, input(), false)}, heard);
  }
  return std::move(builder).build();
}

}  // namespace tutti::internal
