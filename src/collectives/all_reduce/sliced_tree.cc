// Every slice goes up the canonical tree on its own way: a node is held by the slice's owner if one of its children is,
// else by the child's holder that receives less. So each rank gives away each slice but its own exactly once; then the
// owners send results to all.
//
//   slice 0, owner 0     slice 1, owner 1     slice 2, owner 2     slice 3, owner 3     then, as in two_shot,
//        0                    1                    2                    3               owner r sends slice r
//      /   \                /   \                /   \                /   \             to everyone
//     0     2              1     3              0     2              1     3
//    / \   / \            / \   / \            / \   / \            / \   / \           (a node shows its holder)
//   0   1 2   3          0   1 2   3          0   1 2   3          0   1 2   3
//
// Time: 2 (n-1) alpha + 2 (n-1)/n M beta + 3/2 M gamma where n is a power of two, else at most
//       9/4 (n-1) (alpha + M/n beta) + 5/2 M gamma; a rank combines at most log n + 1 sources at a time, not n
// Restrictions: none. A rank receives at most 1.5 (n-1) messages in the reduce half (for one leaf a rank).
// Source: reduce-scatter over a tree a slice, as in Sanders, Speck, Traeff, "Two-tree algorithms for full bandwidth
// broadcast, reduction and scan", Parallel Computing 35(12), 2009, bent here to keep the shape of T: the holder of a
// parent is one of its children's, hence a rank that holds a node gives it away once, and n - 1 ranks give away each
// slice.
#include "collectives/algorithms.h"
#include "collectives/canonical_tree.h"
#include "collectives/peers.h"
#include "collectives/regions.h"

namespace tutti::internal {

const AlgorithmClaims algorithms::all_reduce::sliced_tree_claims{
    .idea = "each slice goes up the canonical tree on its own way, then its owner sends the result to all",
    .canonical = true,
    .several_leaves = true,
    .pipelined = false,
    .messages = "2 n (n-1)",
    .bytes = "2 (n-1)/n M",
    .rounds = "at most log n + 1",
};

Schedule algorithms::all_reduce::sliced_tree(int rank, const Layout& layout, const Message&) {
  const std::vector<int> peers = peers_after(rank, layout.ranks());
  Builder builder(rank, layout.ranks());
  CanonicalReduction reduction(builder, layout, rank, held_in_balance(layout));

  reduction.combine_partials();
  reduction.combine_result(output(rank), true);
  for (int peer : peers) builder.send(peer, output(rank));
  for (int peer : peers) builder.receive(peer, output(peer));
  return std::move(builder).build();
}

}  // namespace tutti::internal
