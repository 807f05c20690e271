// Everyone sends its slice to everyone: the second half of two_shot and of sliced_tree. One round.
//
//   slice:     0   1   2   3
//   rank 0   | * | < | < | < |      * is copied from the rank's own input and sent to all others
//   rank 1   | < | * | < | < |
//   rank 2   | < | < | * | < |
//   rank 3   | < | < | < | * |
//
// Time: (n-1) c alpha + (n-1)/n M beta
// Restrictions: none. The sends stand right behind the copy of what they send, so that where memory is shared one pass
// writes all outputs, or the rings on the way there. Large pieces of symmetric memory are lent instead: the input,
// since what this core has just written, the output, would have to come back to the peer's core every time. Large
// pieces of other memory are copied once to where all others read them (Message::copies_once). A rank that sends no
// more than some pieces ahead (Message::ahead) can write each where it has just read one.
//
// Source: Thakur, Rabenseifner, Gropp, "Optimization of Collective Communication Operations in MPICH", IJHPCA 19(1),
// 2005, section 4.
#include "collectives/algorithms.h"
#include "collectives/one_copy.h"
#include "collectives/peers.h"
#include "collectives/regions.h"
#include "schedule/builder.h"

namespace tutti::internal {

const AlgorithmClaims algorithms::all_gather::one_shot_claims{
    .idea = "everyone sends its slice to everyone",
    .canonical = true,
    .several_leaves = true,
    .pipelined = true,
    .copied_once = Copied::input,
    .messages = "n (n-1) c",
    .bytes = "(n-1)/n M",
    .rounds = "1",
};

Schedule algorithms::all_gather::one_shot(int rank, const Layout& layout, const Message& message) {
  const std::vector<int> peers = peers_after(rank, layout.ranks());
  Builder builder(rank, layout.ranks(), message.chunks, true);
  OneCopy one_copy(builder, message.copies_once);
  for (int chunk = 0; chunk < message.chunks; ++chunk) {
    for (int peer : peers) builder.receive(peer, output(peer, chunk));
    if (message.ahead > 0 && chunk >= message.ahead)
      for (int peer : peers) builder.await(output(peer, chunk - message.ahead));
    builder.copy(input(rank, chunk), output(rank, chunk));
    const Region sent = one_copy.of(input(rank, chunk));
    for (int peer : peers) builder.send(peer, sent);
  }
  return std::move(builder).build();
}

}  // namespace tutti::internal
