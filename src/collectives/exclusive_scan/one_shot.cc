// As scan/one_shot, without a rank's own input: everyone sends its input to all ranks behind it.
//
//   rank 0    rank 1    rank 2    rank 3
//     x0 -----> .         .         .        each to all ranks behind it (drawn: rank 0)
//     x0 ---------------> .         .
//     x0 -------------------------> .
//     -       T[0,1)    T[0,2)    T[0,3)
//
// Time: (n-1) alpha + (n-1) M beta + n M gamma
// Restrictions: one leaf a rank.
// Source: as scan/one_shot.
#include "collectives/algorithms.h"
#include "collectives/prefix.h"

namespace tutti::internal {

const AlgorithmClaims algorithms::exclusive_scan::one_shot_claims{
    .idea = "everyone sends its input to all ranks behind it",
    .canonical = true,
    .several_leaves = false,
    .pipelined = false,
    .messages = "n (n-1)/2",
    .bytes = "(n-1) M",
    .rounds = "1",
};

Schedule algorithms::exclusive_scan::one_shot(int rank, const Layout& layout, const Message&) {
  return prefix_in_one_shot(rank, layout.ranks(), Prefix::exclusive);
}

}  // namespace tutti::internal
