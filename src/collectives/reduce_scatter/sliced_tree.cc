// Every slice goes up the canonical tree on its own way to its owner, the work being balanced: the first half of
// all_reduce/sliced_tree, which explains the way. Each rank gives away each slice but its own exactly once.
//
//   slice 0, owner 0     slice 1, owner 1     slice 2, owner 2     slice 3, owner 3
//        0                    1                    2                    3
//      /   \                /   \                /   \                /   \           (a node shows its holder)
//     0     2              1     3              0     2              1     3
//    / \   / \            / \   / \            / \   / \            / \   / \.
//   0   1 2   3          0   1 2   3          0   1 2   3          0   1 2   3
//
// Time: (n-1) alpha + (n-1)/n M beta + 3/2 M gamma where n is a power of two, else at most
//       5/4 (n-1) (alpha + M/n beta) + 5/2 M gamma; a rank combines at most log n + 1 sources at a time, not n
// Restrictions: none. A rank receives at most 1.5 (n-1) messages (for one leaf a rank).
// Source: see all_reduce/sliced_tree.cc.
#include "collectives/algorithms.h"
#include "collectives/canonical_tree.h"
#include "collectives/regions.h"

namespace tutti::internal {

const AlgorithmClaims algorithms::reduce_scatter::sliced_tree_claims{
    .idea = "each slice goes up the canonical tree on its own balanced way to its owner",
    .canonical = true,
    .several_leaves = true,
    .pipelined = false,
    .messages = "n (n-1)",
    .bytes = "(n-1)/n M",
    .rounds = "at most log n",
};

Schedule algorithms::reduce_scatter::sliced_tree(int rank, const Layout& layout, const Message&) {
  Builder builder(rank, layout.ranks(), 1, true);
  CanonicalReduction reduction(builder, layout, rank, held_in_balance(layout));
  reduction.combine_partials();
  reduction.combine_result(output(rank), true);
  return std::move(builder).build();
}

}  // namespace tutti::internal
