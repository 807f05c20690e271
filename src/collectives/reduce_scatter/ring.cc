// Slice s starts at rank s + 1 and goes once round the ring; each rank adds its own input and passes it on, until it
// ends at rank s. Each rank talks to its two neighbours alone.
//
//   slice 3:  x0 --> x0 x1 --> x0 x1 x2 --> T      on ranks 0, 1, 2, 3
//   slice 0:  x1 --> x1 x2 --> x1 x2 x3 --> ...    on ranks 1, 2, 3, 0; all slices at once
//
// Messages: n (n-1) c
// Bytes:    (n-1)/n M
// Rounds:   n-1
// Time:     (n-1) (c alpha + M/n beta) + 2 (n-1)/n M gamma with c chunks
// Restrictions: one leaf a rank. Slice s is combined from rank s + 1 on: not the canonical order for n > 2.
// Source: Patarasuk, Yuan, "Bandwidth optimal all-reduce algorithms for clusters of workstations", JPDC 69(2), 2009.
#include "collectives/ring.h"

#include "collectives/algorithms.h"
#include "collectives/regions.h"
#include "collectives/requirements.h"

namespace tutti {

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

Schedule reduce_scatter::ring(int rank, const Layout& layout, const Message& message) {
  require_valid("reduce_scatter ring", rank, layout, message);
  require_one_leaf_each("reduce_scatter ring", layout);
  Builder builder(rank, layout.ranks(), message.chunks, true);
  ring_reduce(builder, rank, layout.ranks(), message.chunks, false);
  return std::move(builder).build();
}

}  // namespace tutti
