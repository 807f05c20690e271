// Everyone sends each rank its row. One round.
//
//   row for:   0   1   2   3
//   rank 0   | * | 1 | 2 | 3 |      the number is whom the input row goes to; it becomes row 0 there, as it is rank 0's
//   rank 1   | 0 | * | 2 | 3 |      * is copied to the rank's own output
//   rank 2   | 0 | 1 | * | 3 |
//   rank 3   | 0 | 1 | 2 | * |
//
// Time: (n-1) alpha + (n-1)/n M beta
// Restrictions: none. M is a rank's input. No two ranks begin with the same peer.
// Source: the direct algorithm of Thakur, Rabenseifner, Gropp, "Optimization of Collective Communication Operations in
// MPICH", IJHPCA 19(1), 2005, section 4.4.
#include "collectives/algorithms.h"
#include "collectives/peers.h"
#include "collectives/regions.h"
#include "schedule/builder.h"

namespace tutti::internal {

const AlgorithmClaims algorithms::all_to_all::one_shot_claims{
    .idea = "everyone sends each rank its row at once",
    .canonical = true,
    .several_leaves = true,
    .pipelined = false,
    .messages = "n (n-1)",
    .bytes = "(n-1)/n M",
    .rounds = "1",
};

Schedule algorithms::all_to_all::one_shot(int rank, const Layout& layout, const Message&) {
  const int n = layout.ranks(), own = row_between(rank, rank, n);
  const std::vector<int> peers = peers_after(rank, n);
  Builder builder(rank, n * n, 1, true);
  for (const int peer : peers) builder.receive(peer, output(row_between(peer, rank, n)));
  for (const int peer : peers) builder.send(peer, input(row_between(rank, peer, n)));
  builder.copy(input(own), output(own));
  return std::move(builder).build();
}

}  // namespace tutti::internal
