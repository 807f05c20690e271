// Each slice travels once round the ring, being copied on its way: the second half of all_reduce/ring.cc, which has the
// steps. Each rank talks to its two neighbours alone.
//
//   0 --> 1 --> 2 --> 3 --> 0      first everyone sends its own slice on, then the one that came, and so on n - 1 times
//
// Time: (n-1) (c alpha + M/n beta) with c chunks
// Restrictions: none.
// Source: Thakur, Rabenseifner, Gropp, "Optimization of Collective Communication Operations in MPICH", IJHPCA 19(1),
// 2005, section 4.1.
#include "collectives/ring.h"

#include "collectives/algorithms.h"
#include "collectives/regions.h"

namespace tutti::internal {

const AlgorithmClaims algorithms::all_gather::ring_claims{
    .idea = "each slice goes round the ring once, copied on its way",
    .canonical = true,
    .several_leaves = true,
    .pipelined = true,
    .messages = "n (n-1) c",
    .bytes = "(n-1)/n M",
    .rounds = "n-1",
};

Schedule algorithms::all_gather::ring(int rank, const Layout& layout, const Message& message) {
  const int n = layout.ranks();
  Builder builder(rank, n, message.chunks, true);
  for (int chunk = 0; chunk < message.chunks; ++chunk) {
    builder.copy(input(rank, chunk), output(rank, chunk));
    if (n > 1) builder.send((rank + 1) % n, input(rank, chunk));
  }
  ring_gather(builder, rank, n, message.chunks);
  return std::move(builder).build();
}

}  // namespace tutti::internal
