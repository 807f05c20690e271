// Each slice travels once round the ring, being copied on its way: the second half of all_reduce/ring. Each rank talks
// to its two neighbours alone.
//
//   0 --> 1 --> 2 --> 3 --> 0      first everyone sends its own slice on, then the one that came, and so on n - 1 times
//
// Messages: n (n-1) c
// Bytes:    (n-1)/n M
// Rounds:   n-1
// Time:     (n-1) (c alpha + M/n beta) with c chunks
// Restrictions: none.
// Source: Thakur, Rabenseifner, Gropp, "Optimization of Collective Communication Operations in MPICH", IJHPCA 19(1),
// 2005, section 4.1.
#include "collectives/ring.h"

#include "collectives/algorithms.h"
#include "collectives/regions.h"
#include "collectives/requirements.h"

namespace tutti {

void ring_gather(Builder& builder, int rank, int n, int chunks) {
  const int next = (rank + 1) % n, previous = (rank + n - 1) % n;
  for (int hop = 1; hop < n; ++hop)
    for (int chunk = 0; chunk < chunks; ++chunk) builder.receive(previous, output((rank + n - hop) % n, chunk));
  for (int hop = 1; hop < n - 1; ++hop)
    for (int chunk = 0; chunk < chunks; ++chunk) builder.send(next, output((rank + n - hop) % n, chunk));
}

Schedule all_gather::ring(int rank, const Layout& layout, const Message& message) {
  require_valid("all_gather ring", rank, layout, message);
  const int n = layout.ranks();
  Builder builder(rank, n, message.chunks, true);
  for (int chunk = 0; chunk < message.chunks; ++chunk) {
    builder.copy(input(rank, chunk), output(rank, chunk));
    if (n > 1) builder.send((rank + 1) % n, input(rank, chunk));
  }
  ring_gather(builder, rank, n, message.chunks);
  return std::move(builder).build();
}

}  // namespace tutti
