// Rank 0 sends the message to each other rank. A send and its receive are a transfer between two ranks.
//
//   rank 0   | 1 | 2 | 3 |      the number is whom the message goes to
//   rank 1   | < |
//   rank 2       | < |
//   rank 3           | < |
//
// Time: (n-1) (alpha + M beta)
// Restrictions: none.
// Source: the send of every message-passing system.
#include "collectives/algorithms.h"
#include "collectives/peers.h"
#include "collectives/regions.h"
#include "schedule/builder.h"

namespace tutti::internal {

const AlgorithmClaims algorithms::transfer::direct_claims{
    .idea = "rank 0 sends the message to each other rank",
    .canonical = true,
    .several_leaves = true,
    .pipelined = false,
    .messages = "n-1",
    .bytes = "(n-1) M",
    .rounds = "1",
};

Schedule algorithms::transfer::direct(int rank, const Layout& layout, const Message&) {
  Builder builder(rank, 1, 1);
  if (rank > 0) {
    builder.receive(0, output(0));
  } else {
    for (const int peer : peers_after(0, layout.ranks())) builder.send(peer, input(0));
  }
  return std::move(builder).build();
}

}  // namespace tutti::internal
