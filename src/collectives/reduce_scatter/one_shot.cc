// Everyone sends slice r of its input to rank r, which combines all n of them in one pass: the first half of two_shot.
// One round, and partial results never travel.
//
//   slice:     0   1   2   3
//   rank 0   | * | 1 | 2 | 3 |      the number is whom the input slice goes to;
//   rank 1   | 0 | * | 2 | 3 |      rank r combines column r
//   rank 2   | 0 | 1 | * | 3 |
//   rank 3   | 0 | 1 | 2 | * |
//
// Time: (n-1) c alpha + (n-1)/n M beta + M gamma, with c chunks: a chunk is sent when the one before has been combined
// Restrictions: none.
// Source: pairwise exchange, Thakur, Rabenseifner, Gropp, "Optimization of Collective Communication Operations in
// MPICH", IJHPCA 19(1), 2005, section 4.
#include "collectives/algorithms.h"
#include "collectives/canonical_tree.h"
#include "collectives/regions.h"

namespace tutti::internal {

const AlgorithmClaims algorithms::reduce_scatter::one_shot_claims{
    .idea = "a slice's owner combines all inputs of it",
    .canonical = true,
    .several_leaves = true,
    .pipelined = true,
    .messages = "n (n-1) c",
    .bytes = "(n-1)/n M",
    .rounds = "1",
};

Schedule algorithms::reduce_scatter::one_shot(int rank, const Layout& layout, const Message& message) {
  Builder builder(rank, layout.ranks(), message.chunks, true);
  CanonicalReduction reduction(builder, layout, rank, held_by_owners(layout));
  for (int chunk = 0; chunk < message.chunks; ++chunk) {
    reduction.combine_partials(chunk);
    reduction.combine_result(output(rank, chunk), true);
  }
  return std::move(builder).build();
}

}  // namespace tutti::internal
