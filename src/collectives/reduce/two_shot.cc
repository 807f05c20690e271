// Slice r of the message belongs to rank r, which combines all n inputs of it in one pass and sends the result to the
// root. So no rank sends or receives much more than the message twice, whatever n is; of 16-bit floats three times, as
// results travel in float32. For large messages.
//
//   slice:     0   1   2   3
//   rank 0   | * | 1 | 2 | 3 |      the number is whom the input slice goes to; rank r combines column r
//   rank 1   | 0 | * | 2 | 3 |
//   rank 2   | 0 | 1 | * | 3 |      then ranks 1, 2, 3 send their columns' results to the root, here 0
//   rank 3   | 0 | 1 | 2 | * |
//
// Time: 2 (n-1) (c alpha + M/n beta) + (1 + (n-1)/n) M gamma with c chunks, at the root
// Restrictions: none. A result travels unfinished, and the root rounds it: only the root has memory for what is
// finished.
//
// Source: reduce-scatter, then gather, Rabenseifner, "Optimization of Collective Reduction Operations", ICCS 2004; each
// half in one round, as all_reduce/two_shot.
#include "collectives/algorithms.h"
#include "collectives/canonical_tree.h"
#include "collectives/peers.h"
#include "collectives/regions.h"

namespace tutti::internal {

const AlgorithmClaims algorithms::reduce::two_shot_claims{
    .idea = "a slice's owner combines all inputs of it, and sends the result to the root",
    .canonical = true,
    .several_leaves = true,
    .pipelined = true,
    .messages = "(n-1) (n+1) c",
    .bytes = "M",
    .rounds = "2",
};

Schedule algorithms::reduce::two_shot(int rank, const Layout& layout, const Message& message) {
  const int root = message.root;
  Builder builder(rank, layout.ranks(), message.chunks);
  CanonicalReduction reduction(builder, layout, rank, held_by_owners(layout));
  const int row = rank == root ? 0 : builder.new_scratch_row();
  for (int chunk = 0; chunk < message.chunks; ++chunk) {
    reduction.combine_partials(chunk);
    if (rank != root) {
      reduction.combine_result(scratch(row, rank, chunk), false);
      reduction.send(root, scratch(row, rank, chunk));
      continue;
    }
    reduction.combine_result(output(rank, chunk), true);
    for (const int peer : peers_after(root, layout.ranks()))
      builder.reduce({Builder::message(peer, output(peer, chunk), true)}, output(peer, chunk), true);
  }
  return std::move(builder).build();
}

}  // namespace tutti::internal
