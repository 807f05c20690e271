// Rounds in which everyone sends all the slices that it has, in one message, and so has twice as many afterwards. Rank
// r keeps the slices in relay, from its own on: r, r+1, ..., round the ring. So what comes lies behind what is there.
//
//   rank 0 has    0 | then, from rank 1, 1 | then, from rank 2, 2 3        in round k rank r sends to r - 2^k
//   rank 1        1 |                    2 |                    3 0        and receives from r + 2^k
//   rank 2        2 |                    3 |                    0 1
//   rank 3        3 |                    0 |                    1 2
//
// Time: log n alpha + (n-1)/n M beta + M gamma, the last for copies
// Restrictions: rows of one length. All slices are copied at the end, from relay to the output.
// Source: Bruck, Ho, Kipnis, Upfal, Weathersby, "Efficient algorithms for all-to-all communications in multiport
// message-passing systems", IEEE Transactions on Parallel and Distributed Systems 8(11), 1997.
#include <algorithm>

#include "collectives/algorithms.h"
#include "collectives/regions.h"
#include "schedule/builder.h"

namespace tutti::internal {

const AlgorithmClaims algorithms::all_gather::bruck_claims{
    .idea = "every round doubles the slices that a rank has, in one message",
    .canonical = true,
    .several_leaves = true,
    .pipelined = false,
    .joins_rows = true,
    .messages = "n log n",
    .bytes = "(n-1)/n M",
    .rounds = "at most log n",
};

Schedule algorithms::all_gather::bruck(int rank, const Layout& layout, const Message&) {
  const int n = layout.ranks();
  Builder builder(rank, n, 1, true);
  const int rows = builder.new_scratch_rows(n);
  // The slices [distance, end) behind that of `rank`.
  const auto held = [&](int distance, int end) {
    std::vector<int> slices;
    for (int i = distance; i < end; ++i) slices.push_back((rank + i) % n);
    return relays(rows + distance, slices);
  };
  builder.copy(input(rank), relay(rows, rank));
  for (int have = 1; have < n; have *= 2) {
    const int more = std::min(have, n - have);
    builder.receive((rank + have) % n, held(have, have + more));
    builder.send((rank - have + n) % n, held(0, more));
  }
  for (int i = 0; i < n; ++i) builder.copy(relay(rows + i, (rank + i) % n), output((rank + i) % n));
  return std::move(builder).build();
}

}  // namespace tutti::internal
