// The root gives the message to every other rank itself, chunk behind chunk.
//
//           0
//         / | \              root 0
//        v  v  v
//        1  2  3
//
// Time: (n-1) c alpha + (n-1) M beta with c chunks. Where ranks share memory all read the root's at the same time:
// (n-1) c alpha + 2 M beta
// Restrictions: none. Where other ranks cannot read the root's input where it lies, it copies each chunk once to where
// they can. In every other algorithm a rank copies a chunk for each rank that it sends it to, and in a chain or a tree
// ranks wait for each other.
//
// Source: the flat broadcast over a shared buffer of Graham, Shipman, "MPI support for multi-core architectures:
// optimized shared memory collectives", EuroPVM/MPI 2008.
#include "collectives/algorithms.h"
#include "collectives/peers.h"
#include "collectives/regions.h"
#include "schedule/builder.h"

namespace tutti::internal {

const AlgorithmClaims algorithms::broadcast::one_shot_claims{
    .idea = "the root sends the message to everyone",
    .canonical = true,
    .several_leaves = true,
    .pipelined = true,
    .shares_input = true,
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
  const bool copies = n > 2 && !message.input_is_shared;
  const int row = copies ? builder.new_scratch_row() : 0;
  for (int chunk = 0; chunk < message.chunks; ++chunk) {
    builder.copy(input(0, chunk), output(0, chunk));
    const Region shared = copies ? region_of(Space::relay, row, 0, chunk) : input(0, chunk);
    if (copies) builder.copy(input(0, chunk), shared);
    for (int peer : peers_after(rank, n)) builder.send(peer, shared);
  }
  return std::move(builder).build();
}

}  // namespace tutti::internal
