// The root sends every chunk of the message to every other rank.
//
//           0
//         / | \              root 0
//        v  v  v
//        1  2  3
//
// Time: (n-1) c alpha + (n-1) M beta with c chunks. Ranks that share memory read the root's at the same time, in
//       (n-1) c alpha + 2 M beta
// Restrictions: none. If the other ranks cannot read the input where it lies, the root may copy each chunk once to
// where they can (Message::copies_once). Else it copies the chunk for each of them.
//
// Source: the flat broadcast over a shared buffer of Graham, Shipman, "MPI support for multi-core architectures:
// optimized shared memory collectives", EuroPVM/MPI 2008.
#include "collectives/algorithms.h"
#include "collectives/one_copy.h"
#include "collectives/peers.h"
#include "collectives/regions.h"
#include "schedule/builder.h"

namespace tutti::internal {

const AlgorithmClaims algorithms::broadcast::one_shot_claims{
    .idea = "the root sends the message to everyone",
    .canonical = true,
    .several_leaves = true,
    .pipelined = true,
    .copied_once = Copied::input,
    .messages = "(n-1) c",
    .bytes = "(n-1) M",
    .rounds = "1",
};

Schedule algorithms::broadcast::one_shot(int rank, const Layout& layout, const Message& message) {
  const int n = layout.ranks();
  Builder builder(rank, 1, message.chunks);
  if (rank != message.root) {
    for (int chunk = 0; chunk < message.chunks; ++chunk) builder.receive(message.root, output(0, chunk));
    return std::move(builder).build();
  }
  OneCopy one_copy(builder, message.copies_once);
  for (int chunk = 0; chunk < message.chunks; ++chunk) {
    builder.copy(input(0, chunk), output(0, chunk));
    const Region sent = one_copy.of(input(0, chunk));
    for (int peer : peers_after(rank, n)) builder.send(peer, sent);
  }
  return std::move(builder).build();
}

}  // namespace tutti::internal
