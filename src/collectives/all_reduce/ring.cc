// Each slice travels once round the ring, being combined on its way, until it ends at its owner; then once more, being
// copied. Each rank talks to its two neighbours alone, and all links carry the fewest bytes there can be.
//
//   0 --> 1 --> 2 --> 3 --> 0      slice 3 is combined on 0, 1, 2, 3 and then copied on 0, 1, 2;
//                                  slice 0 on 1, 2, 3, 0, then on 1, 2, 3; and so on, all at once
//
// Time: 2 (n-1) (c alpha + M/n beta) + 2 (n-1)/n M gamma with c chunks
//   n ranks, a message of M bytes; the time of a message without bytes is alpha, of a byte on its way beta, of a byte
//   that a reduction reads gamma
// Restrictions: one leaf a rank. Slice s is combined from rank s + 1 on: not the canonical order for n > 2.
// Source: Patarasuk, Yuan, "Bandwidth optimal all-reduce algorithms for clusters of workstations", JPDC 69(2), 2009.
#include "collectives/ring.h"

#include <utility>
#include <vector>

#include "collectives/algorithms.h"
#include "collectives/regions.h"

namespace tutti::internal {

const AlgorithmClaims algorithms::all_reduce::ring_claims{
    .idea = "each slice goes round the ring twice: combined, then copied",
    .canonical = false,
    .several_leaves = false,
    .pipelined = true,
    .messages = "2 n (n-1) c",
    .bytes = "2 (n-1)/n M",
    .rounds = "2 (n-1)",
};

// The first time round. A rank sends its input of the slice before its own. Then, in turn, it takes a slice that has
// come `hop` ranks far, combines it with its own input and passes the result on; the last one is its own slice.
void ring_reduce(Builder& builder, int rank, int n, int chunks, bool pass_on) {
  if (n == 1) {
    for (int chunk = 0; chunk < chunks; ++chunk) builder.copy(input(0, chunk), output(0, chunk), true);
    return;
  }
  const int next = (rank + 1) % n, previous = (rank + n - 1) % n;
  for (int chunk = 0; chunk < chunks; ++chunk) builder.send(next, input(previous, chunk));

  // Two rows in turn: the next rank still reads the one while the other is written.
  const int rows[2] = {n > 2 ? builder.new_scratch_row() : 0, n > 3 ? builder.new_scratch_row() : 0};
  for (int hop = 1; hop < n; ++hop) {
    const int slice = (rank + n - 1 - hop + n) % n;
    const int first_leaf = (slice + 1) % n;
    const bool last = hop == n - 1;
    for (int chunk = 0; chunk < chunks; ++chunk) {
      std::vector<Source> sources{Builder::message(previous, input(slice, chunk), hop > 1),
                                  Builder::local(input(slice, chunk))};
      if (rank < first_leaf) std::swap(sources[0], sources[1]);
      sources[1].joins = 1;
      const Region to = last ? output(slice, chunk) : scratch(rows[hop % 2], slice, chunk);
      builder.reduce(std::move(sources), to, last);
      if (!last || pass_on) builder.send(next, to);
    }
  }
}

// The second time round. The rank has sent its own slice. The others come from the rank before, and it passes each on,
// but for the last one, which the next rank owns.
void ring_gather(Builder& builder, int rank, int n, int chunks) {
  const int next = (rank + 1) % n, previous = (rank + n - 1) % n;
  for (int hop = 1; hop < n; ++hop)
    for (int chunk = 0; chunk < chunks; ++chunk) builder.receive(previous, output((rank + n - hop) % n, chunk));
  for (int hop = 1; hop < n - 1; ++hop)
    for (int chunk = 0; chunk < chunks; ++chunk) builder.send(next, output((rank + n - hop) % n, chunk));
}

Schedule algorithms::all_reduce::ring(int rank, const Layout& layout, const Message& message) {
  Builder builder(rank, layout.ranks(), message.chunks);
  ring_reduce(builder, rank, layout.ranks(), message.chunks, true);
  ring_gather(builder, rank, layout.ranks(), message.chunks);
  return std::move(builder).build();
}

}  // namespace tutti::internal
