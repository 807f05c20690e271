// Up the canonical tree to the root. A node of T is held where its first leaf is, but every node with the root's leaf
// is held by the root: so no rank sends more than one message, and the result is made where it is wanted. Cut into
// chunks, a rank combines one chunk while the next is on its way.
//
//     root 0                     root 2
//          0                          2
//        ^   ^                      ^   ^          1 -> 0 and 3 -> 2, then T[2,4) to 0, or T[0,2) to 2
//       /     \                    /     \.
//      1       2                  0       3
//              ^                  ^
//              |                  |
//              3                  1
//
// Time: at most log n (c alpha + M beta) + (log n + 1 + (log n (log n + 1)/2 - 1)/c) M gamma with c chunks, at the
// root;
//       the last term is the way of the first chunk up to it
// Restrictions: none.
// Source: reduction over a binomial tree, Thakur, Rabenseifner, Gropp, "Optimization of Collective Communication
// Operations in MPICH", IJHPCA 19(1), 2005, section 4; not rotated, since T is the same for every root.
#include "collectives/algorithms.h"
#include "collectives/canonical_tree.h"
#include "collectives/regions.h"

namespace tutti::internal {

const AlgorithmClaims algorithms::reduce::binomial_tree_claims{
    .idea = "up the canonical tree to the root",
    .canonical = true,
    .several_leaves = true,
    .pipelined = true,
    .messages = "(n-1) c",
    .bytes = "M",
    .rounds = "at most log n",
};

Schedule algorithms::reduce::binomial_tree(int rank, const Layout& layout, const Message& message) {
  const int root = message.root;
  Builder builder(rank, 1, message.chunks);
  const HeldTree tree =
      hold(layout, 0, root, [root](Node, int left, int right) { return right == root ? root : left; });
  CanonicalReduction reduction(builder, layout, rank, {tree});
  for (int chunk = 0; chunk < message.chunks; ++chunk) {
    reduction.combine_partials(chunk);
    if (rank == root) reduction.combine_result(output(0, chunk), true);
  }
  return std::move(builder).build();
}

}  // namespace tutti::internal
