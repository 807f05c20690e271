// Everyone sends its whole input to the root, which combines all n in one pass. One message's latency: for messages so
// small that only latency counts.
//
//   rank 0    rank 1    rank 2    rank 3      root 0
//     x0 <------ x1        |         |
//     x0 <---------------- x2        |
//     x0 <-------------------------- x3
//   T[0,4)
//
// Time: (n-1) alpha + M beta + n M gamma: the messages come side by side, and the root reads all of them
// Restrictions: none.
// Source: the linear reduction of Thakur, Rabenseifner, Gropp, "Optimization of Collective Communication Operations in
// MPICH", IJHPCA 19(1), 2005, section 4, with one pass over all inputs.
#include "collectives/algorithms.h"
#include "collectives/canonical_tree.h"
#include "collectives/regions.h"

namespace tutti::internal {

const AlgorithmClaims algorithms::reduce::one_shot_claims{
    .idea = "everyone sends its input to the root, which combines all",
    .canonical = true,
    .several_leaves = true,
    .pipelined = false,
    .messages = "n-1",
    .bytes = "M",
    .rounds = "1",
};

Schedule algorithms::reduce::one_shot(int rank, const Layout& layout, const Message& message) {
  const int root = message.root;
  Builder builder(rank, 1);
  CanonicalReduction reduction(builder, layout, rank, {hold(layout, 0, root, [root](Node, int, int) { return root; })});
  reduction.combine_partials();
  if (rank == root) reduction.combine_result(output(), true);
  return std::move(builder).build();
}

}  // namespace tutti::internal
