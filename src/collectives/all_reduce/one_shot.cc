// Everyone sends its whole input to everyone, and each rank combines all inputs by itself. One message's latency, at
// n - 1 times the bytes: for messages so small that only latency counts.
//
//   rank 0    rank 1    rank 2    rank 3
//     x0 ------> x1 ------> x2 ------> x3      each to all others (drawn: to the next)
//      |         |          |          |
//   T[0,4)    T[0,4)     T[0,4)     T[0,4)     the same combination four times
//
// Time: (n-1) alpha + (n-1) M beta + n M gamma
// Restrictions: none. The result is made in scratch: in place, its place is still lent to peers that have not read it.
// Source: the direct all-to-all broadcast of Thakur, Rabenseifner, Gropp, "Optimization of Collective Communication
// Operations in MPICH", IJHPCA 19(1), 2005, section 4; known as "one-shot" from GPU libraries.
#include "collectives/algorithms.h"
#include "collectives/canonical_tree.h"
#include "collectives/regions.h"

namespace tutti::internal {

const AlgorithmClaims algorithms::all_reduce::one_shot_claims{
    .idea = "everyone sends its input to everyone, each combines all",
    .canonical = true,
    .several_leaves = true,
    .pipelined = false,
    .messages = "n (n-1)",
    .bytes = "(n-1) M",
    .rounds = "1",
};

Schedule algorithms::all_reduce::one_shot(int rank, const Layout& layout, const Message&) {
  Builder builder(rank, 1);
  std::vector<HeldTree> trees = held_by_owners(layout);
  for (HeldTree& tree : trees) tree.slice = 0;  // every rank owns a copy of the one slice
  CanonicalReduction reduction(builder, layout, rank, trees);

  reduction.combine_partials();
  if (layout.ranks() == 1) {
    reduction.combine_result(output(), true);
  } else {
    const Region result = scratch(builder.new_scratch_row());
    reduction.combine_result(result, false);
    builder.copy(result, output(), true);
  }
  return std::move(builder).build();
}

}  // namespace tutti::internal
