// The root sends each rank its slice.
//
//   slice:     0   1   2   3        root 0
//   rank 0   | * | 1 | 2 | 3 |      the number is whom the input slice goes to; * is copied to the root's own output
//   rank 1       | < |
//   rank 2           | < |
//   rank 3               | < |
//
// Time: (n-1) alpha + (n-1)/n M beta, at the root
// Restrictions: none.
// Source: the linear scatter of Thakur, Rabenseifner, Gropp, "Optimization of Collective Communication Operations in
// MPICH", IJHPCA 19(1), 2005, section 3.
#include "collectives/algorithms.h"
#include "collectives/peers.h"
#include "collectives/regions.h"
#include "schedule/builder.h"

namespace tutti::internal {

const AlgorithmClaims algorithms::scatter::one_shot_claims{
    .idea = "the root sends each rank its slice",
    .canonical = true,
    .several_leaves = true,
    .pipelined = false,
    .messages = "n-1",
    .bytes = "(n-1)/n M",
    .rounds = "1",
};

Schedule algorithms::scatter::one_shot(int rank, const Layout& layout, const Message& message) {
  Builder builder(rank, layout.ranks(), 1, true);
  if (rank != message.root) {
    builder.receive(message.root, output(rank));
  } else {
    for (const int peer : peers_after(rank, layout.ranks())) builder.send(peer, input(peer));
    builder.copy(input(rank), output(rank));
  }
  return std::move(builder).build();
}

}  // namespace tutti::internal
