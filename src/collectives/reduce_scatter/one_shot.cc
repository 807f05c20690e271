// Everyone sends slice r of its input to rank r, which combines all n of them in one pass: the first half of two_shot.
// One round, and partial results never travel.
//
//   slice:     0   1   2   3
//   rank 0   | * | 1 | 2 | 3 |      the number is whom the input slice goes to;
//   rank 1   | 0 | * | 2 | 3 |      rank r combines column r
//   rank 2   | 0 | 1 | * | 3 |
//   rank 3   | 0 | 1 | 2 | * |
//
// Messages: n (n-1)
// Bytes:    (n-1)/n M
// Rounds:   1
// Time:     (n-1) alpha + (n-1)/n M beta + M gamma
// Restrictions: none.
// Source: pairwise exchange, Thakur, Rabenseifner, Gropp, "Optimization of Collective Communication Operations in
// MPICH", IJHPCA 19(1), 2005, section 4.
#include "collectives/algorithms.h"
#include "collectives/canonical_tree.h"
#include "collectives/regions.h"
#include "collectives/requirements.h"

namespace tutti {

Schedule reduce_scatter::one_shot(int rank, const Layout& layout, const Message& message) {
  require_valid("reduce_scatter one_shot", rank, layout, message);
  Builder builder(rank, layout.ranks(), 1, true);
  CanonicalReduction reduction(builder, layout, rank, held_by_owners(layout));
  reduction.combine_partials();
  reduction.combine_result(output(rank), true);
  return std::move(builder).build();
}

}  // namespace tutti
