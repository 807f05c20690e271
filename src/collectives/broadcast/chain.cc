// The message goes from the root to the next rank and on, each passing a chunk on while the next chunk arrives. No rank
// sends more than the message once, so for large messages in many chunks the time is that of one message.
//
//   0 --> 1 --> 2 --> 3      root 0; for another root all numbers are shifted by it
//   chunk 0 reaches rank 3 while chunk 1 reaches rank 2 and chunk 2 rank 1
//
// Time: (n + c - 2) (alpha + M/c beta) with c chunks
// Restrictions: none.
// Source: the pipelined chain of Pjesivac-Grbovic, Angskun, Bosilca, Fagg, Gabriel, Dongarra, "Performance analysis of
// MPI collective operations", Cluster Computing 10(2), 2007.
#include "collectives/algorithms.h"
#include "collectives/regions.h"
#include "schedule/builder.h"

namespace tutti::internal {

const AlgorithmClaims algorithms::broadcast::chain_claims{
    .idea = "from rank to rank, chunk behind chunk",
    .canonical = true,
    .several_leaves = true,
    .pipelined = true,
    .messages = "(n-1) c",
    .bytes = "M",
    .rounds = "n-1",
};

Schedule algorithms::broadcast::chain(int rank, const Layout& layout, const Message& message) {
  const int n = layout.ranks();
  const int next = (rank + 1) % n, previous = (rank + n - 1) % n;

  Builder builder(rank, 1, message.chunks);
  if (rank != message.root)
    for (int chunk = 0; chunk < message.chunks; ++chunk) builder.receive(previous, output(0, chunk));
  for (int chunk = 0; chunk < message.chunks; ++chunk) {
    if (rank == message.root) builder.copy(input(0, chunk), output(0, chunk));
    if (next != message.root) builder.send(next, output(0, chunk));
  }
  return std::move(builder).build();
}

}  // namespace tutti::internal
