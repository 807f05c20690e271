// Each slice travels once round the ring, being combined on its way, until it ends at its owner; then once more, being
// copied. Each rank talks to its two neighbours alone, and all links carry the fewest bytes there can be.
//
//   0 --> 1 --> 2 --> 3 --> 0      slice 3 is combined on 0, 1, 2, 3 and then copied on 0, 1, 2;
//                                  slice 0 on 1, 2, 3, 0, then on 1, 2, 3; and so on, all at once
//
// Messages: 2 n (n-1) c
// Bytes:    2 (n-1)/n M
// Rounds:   2 (n-1)
// Time:     2 (n-1) (c alpha + M/n beta) + 2 (n-1)/n M gamma with c chunks
// Restrictions: one leaf a rank. Slice s is combined from rank s + 1 on: not the canonical order for n > 2.
// Source: Patarasuk, Yuan, "Bandwidth optimal all-reduce algorithms for clusters of workstations", JPDC 69(2), 2009.
#include "collectives/ring.h"

#include "collectives/algorithms.h"
#include "collectives/requirements.h"

namespace tutti {

Schedule all_reduce::ring(int rank, const Layout& layout, const Message& message) {
  require_valid("all_reduce ring", rank, layout, message);
  require_one_leaf_each("all_reduce ring", layout);
  Builder builder(rank, layout.ranks(), message.chunks);
  ring_reduce(builder, rank, layout.ranks(), message.chunks, true);
  ring_gather(builder, rank, layout.ranks(), message.chunks);
  return std::move(builder).build();
}

}  // namespace tutti
