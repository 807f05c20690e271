// n - 1 rounds. In round d everyone sends to the rank d behind it and receives from the rank d before it, so that no
// rank has more than one message on its way in and one on its way out.
//
//   round 1: 0 -> 1, 1 -> 2, 2 -> 3, 3 -> 0      round 2: 0 -> 2, 1 -> 3, 2 -> 0, 3 -> 1      round 3: 0 -> 3, ...
//
// Time: (n-1) (alpha + M/n beta)
// Restrictions: none. M is a rank's input. A rank goes on to the next round once its message of this one is here.
// Source: Thakur, Rabenseifner, Gropp, "Optimization of Collective Communication Operations in MPICH", IJHPCA 19(1),
// 2005, section 4.4.
#include "collectives/algorithms.h"
#include "collectives/regions.h"
#include "schedule/builder.h"

namespace tutti::internal {

const AlgorithmClaims algorithms::all_to_all::pairwise_claims{
    .idea = "in round d everyone sends to the rank d behind it",
    .canonical = true,
    .several_leaves = true,
    .pipelined = false,
    .messages = "n (n-1)",
    .bytes = "(n-1)/n M",
    .rounds = "n-1",
};

Schedule algorithms::all_to_all::pairwise(int rank, const Layout& layout, const Message&) {
  const int n = layout.ranks(), own = row_between(rank, rank, n);
  Builder builder(rank, n * n, 1, true);
  builder.copy(input(own), output(own));
  for (int distance = 1; distance < n; ++distance) {
    const int to = (rank + distance) % n, from = (rank - distance + n) % n;
    const Region here = output(row_between(from, rank, n));
    builder.receive(from, here);
    builder.send(to, input(row_between(rank, to, n)));
    builder.await(here);
  }
  return std::move(builder).build();
}

}  // namespace tutti::internal
