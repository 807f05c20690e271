// Up the canonical tree to rank 0, each node being held where its first leaf is, and back down a binomial tree. Cut
// into chunks, the way up of one chunk overlaps the way down of earlier ones.
//
//          0                     0
//        ^   ^                 /   \             up: 1 -> 0 and 3 -> 2, then 2 -> 0 with T[2,4)
//       /     \               v     v            down: the same edges the other way
//      1       2             1       2
//              ^                     |           in steps of chunks:  rank 2   up 0 | up 1 | up 2, down 0 | ...
//              |                     v
//              3                     3
//
// Time: at most 2 log n (c alpha + M beta) + (log n + 1 + (log n (log n + 1)/2 - 1)/c) M gamma with c chunks, at rank 0
//       the most; the last term is the way of the first chunk up to it
// Restrictions: none.
// Source: reduce and broadcast over binomial trees, Thakur, Rabenseifner, Gropp, "Optimization of Collective
// Communication Operations in MPICH", IJHPCA 19(1), 2005, section 4; not rotated, since T has its root at leaf 0.
#include <bit>

#include "collectives/algorithms.h"
#include "collectives/canonical_tree.h"
#include "collectives/peers.h"
#include "collectives/regions.h"

namespace tutti::internal {

const AlgorithmClaims algorithms::all_reduce::binomial_tree_claims{
    .idea = "up the canonical tree to rank 0 and back",
    .canonical = true,
    .several_leaves = true,
    .pipelined = true,
    .messages = "2 (n-1) c",
    .bytes = "log n M",
    .rounds = "at most 2 log n",
};

Schedule algorithms::all_reduce::binomial_tree(int rank, const Layout& layout, const Message& message) {
  Builder builder(rank, 1, message.chunks);
  const HeldTree to_first = hold(layout, 0, 0, [](Node, int left, int) { return left; });
  CanonicalReduction reduction(builder, layout, rank, {to_first});

  // A chunk needs a round a level to the root and as many back: until then there are further chunks to send up.
  const int way = 2 * std::popcount(static_cast<unsigned>(rank));
  for (int chunk = 0; chunk < message.chunks + way; ++chunk) {
    if (chunk < message.chunks) {
      reduction.combine_partials(chunk);
      if (rank == 0) reduction.combine_result(output(0, chunk), true);
      if (rank != 0) builder.receive(binomial_parent(rank), output(0, chunk));
    }
    if (chunk >= way)
      for (int child : binomial_children(rank, layout.ranks())) builder.send(child, output(0, chunk - way));
  }
  return std::move(builder).build();
}

}  // namespace tutti::internal
