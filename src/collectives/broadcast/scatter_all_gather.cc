// The message is cut into n slices. The root scatters them over a binomial tree: a rank gets the slices of its whole
// subtree, keeps its own and passes the others on. Then all slices go round a ring. So for large messages the root
// sends the message twice, whatever n is, where in a binomial tree it sends it log n times.
//
//   root 0; for another root all numbers are shifted by it
//
//          0                     holds after the scatter       then slices go round, but not to a rank that holds them:
//   2, 3 /   \ 1                 rank 0   0 1 2 3              0 --> 1   slices 0, 3, 2
//       v     v                  rank 1     1                  1 --> 2   slices 1, 0
//       2      1                 rank 2       2 3              2 --> 3   slices 2, 1, 0
//     3 |                        rank 3         3
//       v
//       3
//
// Time: 2 (n-1) (c alpha + M/n beta) with c chunks, at the root, which sends the most
// Restrictions: none.
// Source: Barnett, Gupta, Payne, Shuler, van de Geijn, Watts, "Interprocessor collective communication library
// (InterCom)", SHPCC 1994; as here, with a ring, Thakur, Rabenseifner, Gropp, "Optimization of Collective Communication
// Operations in MPICH", IJHPCA 19(1), 2005, section 4.2. A slice that the scatter has brought is not sent again.
#include <algorithm>

#include "collectives/algorithms.h"
#include "collectives/peers.h"
#include "collectives/regions.h"
#include "schedule/builder.h"

namespace tutti::internal {

const AlgorithmClaims algorithms::broadcast::scatter_all_gather_claims{
    .idea = "the root scatters slices down a tree, then they go round a ring",
    .canonical = true,
    .several_leaves = true,
    .pipelined = true,
    .messages = "n (n-1) c",
    .bytes = "2 (n-1)/n M",
    .rounds = "n-1",
};

namespace {

// Ranks of the subtree of `place`, which are [place, place + size): as many slices come down to it.
int subtree_size(int place, int n) { return place == 0 ? n : std::min(place & -place, n - place); }

}  // namespace

Schedule algorithms::broadcast::scatter_all_gather(int rank, const Layout& layout, const Message& message) {
  const int n = layout.ranks();
  const int place = (rank - message.root + n) % n;  // in a tree, and a ring, that begin at 0
  const auto rank_at = [&](int other) { return (other + message.root) % n; };
  const auto slice_behind = [&](int other, int hops) { return (other - hops + n) % n; };
  const int size = subtree_size(place, n), next = (place + 1) % n;

  Builder builder(rank, n, message.chunks);
  const auto for_each_chunk = [&](const auto& step) {
    for (int chunk = 0; chunk < message.chunks; ++chunk) step(chunk);
  };
  if (place != 0) {
    for_each_chunk([&](int chunk) {
      for (int slice = place; slice < place + size; ++slice)
        builder.receive(rank_at(binomial_parent(place)), output(slice, chunk));
    });
    for (int hops = 1; hops <= n - size; ++hops)
      for_each_chunk([&](int chunk) { builder.receive(rank_at(place - 1), output(slice_behind(place, hops), chunk)); });
  }

  for_each_chunk([&](int chunk) {
    if (place == 0)
      for (int slice = 0; slice < n; ++slice) builder.copy(input(slice, chunk), output(slice, chunk));
    for (int child : binomial_children(place, n))
      for (int slice = child; slice < child + subtree_size(child, n); ++slice)
        builder.send(rank_at(child), output(slice, chunk));
  });
  for (int hops = 1; hops <= n - subtree_size(next, n); ++hops)
    for_each_chunk([&](int chunk) { builder.send(rank_at(next), output(slice_behind(next, hops), chunk)); });
  return std::move(builder).build();
}

}  // namespace tutti::internal
