// Everyone sends its slice to the root.
//
//   slice:     0   1   2   3        root 0
//   rank 0   | * | < | < | < |      * is copied from the root's own input
//   rank 1       | 0 |              the number is whom the input slice goes to
//   rank 2           | 0 |
//   rank 3               | 0 |
//
// Time: (n-1) alpha + (n-1)/n M beta, at the root
// Restrictions: none.
// Source: the linear gather of Thakur, Rabenseifner, Gropp, "Optimization of Collective Communication Operations in
// MPICH", IJHPCA 19(1), 2005, section 3.
#include "collectives/algorithms.h"
#include "collectives/peers.h"
#include "collectives/regions.h"
#include "schedule/builder.h"

namespace tutti::internal {

const AlgorithmClaims algorithms::gather::one_shot_claims{
    .idea = "everyone sends its slice to the root",
    .canonical = true,
    .several_leaves = true,
    .pipelined = false,
    .messages = "n-1",
    .bytes = "M/n",
    .rounds = "1",
};

Schedule algorithms::gather::one_shot(int rank, const Layout& layout, const Message& message) {
  Builder builder(rank, layout.ranks(), 1, true);
  if (rank != message.root) {
    builder.send(message.root, input(rank));
  } else {
    for (const int peer : peers_after(rank, layout.ranks())) builder.receive(peer, output(peer));
    builder.copy(input(rank), output(rank));
  }
  return std::move(builder).build();
}

}  // namespace tutti::internal
