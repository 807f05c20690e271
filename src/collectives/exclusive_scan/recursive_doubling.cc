// As scan/recursive_doubling, but a rank begins with nothing, and what it first gets is all it has.
//
//   rank     0         1         2         3
//            x0 <----> x1        x2 -----> x3          totals T[0,2); rank 3 has x2
//            T[0,2) ------------> .                    0 to 2, 1 to 3: T[0,2) for rank 2, and before x2
//                      T[0,2) -----------> x2
//            -         T[0,1)    T[0,2)    T[0,3)
//
// Time: at most log n (alpha + M beta) + (6 log n - 5) M gamma
// Restrictions: one leaf a rank.
// Source: as scan/recursive_doubling.
#include "collectives/algorithms.h"
#include "collectives/prefix.h"

namespace tutti::internal {

const AlgorithmClaims algorithms::exclusive_scan::recursive_doubling_claims{
    .idea = "as a scan, but a rank begins with nothing",
    .canonical = true,
    .several_leaves = false,
    .pipelined = false,
    .messages = "at most n log n",
    .bytes = "at most log n M",
    .rounds = "log n",
};

Schedule algorithms::exclusive_scan::recursive_doubling(int rank, const Layout& layout, const Message&) {
  return prefix_by_doubling(rank, layout.ranks(), Prefix::exclusive);
}

}  // namespace tutti::internal
