// Slice s starts at rank s + 1 and goes once round the ring; each rank adds its own input and passes it on, until it
// ends at rank s: the first half of all_reduce/ring.cc, which has the steps. Each rank talks to its two neighbours
// alone.
//
//   slice 3:  x0 --> x0 x1 --> x0 x1 x2 --> T      on ranks 0, 1, 2, 3
//   slice 0:  x1 --> x1 x2 --> x1 x2 x3 --> ...    on ranks 1, 2, 3, 0; all slices at once
//
// Time: (n-1) (c alpha + M/n beta) + 2 (n-1)/n M gamma with c chunks
// Restrictions: one leaf a rank. Slice s is combined from rank s + 1 on: not the canonical order for n > 2.
// Source: Patarasuk, Yuan, "Bandwidth optimal all-reduce algorithms for clusters of workstations", JPDC 69(2), 2009.
#include "collectives/ring.h"

#include "collectives/algorithms.h"

namespace tutti::internal {

const AlgorithmClaims algorithms::reduce_scatter::ring_claims{
    .idea = "each slice goes round the ring once, combined on its way to its owner",
    .canonical = false,
    .several_leaves = false,
    .pipelined = true,
    .messages = "n (n-1) c",
    .bytes = "(n-1)/n M",
    .rounds = "n-1",
};

Schedule algorithms::reduce_scatter::ring(int rank, const Layout& layout, const Message& message) {
  Builder builder(rank, layout.ranks(), message.chunks, true);
  ring_reduce(builder, rank, layout.ranks(), message.chunks, false);
  return std::move(builder).build();
}

}  // namespace tutti::internal
