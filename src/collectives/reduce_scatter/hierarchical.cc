// For hosts of several ranks: each host combines its own inputs of every slice to its nodes of the canonical tree, as
// large ones as it has, and a slice's owner combines those of all hosts. The first half of all_reduce/hierarchical.
//
//   2 hosts x 2 ranks, slice 0 (owner 0):     host A      host B
//                                             0  <-- 1    2  <-- 3      <-- within a host, over shared memory
//                                             ^           |
//                                             '--T[2,4)---'             between hosts
//
// Time: (h-1) (c alpha + M/n beta) between hosts, and within them at most (n-1) (c alpha + M/n beta) + 2 M gamma,
//       with c chunks; one behind the other for one chunk, side by side for many
// Restrictions: none. Messages, bytes and rounds are those of n ranks on one host, where it is one_shot; on h > 1 hosts
// that hold g ranks each, an aligned power of two, the rounds are at most 2. What crosses is said of these; other hosts
// have several largest nodes, and more crosses: README.md has a table.
//
// Source: see all_reduce/hierarchical.cc.
#include "collectives/algorithms.h"
#include "collectives/held_by_hosts.h"
#include "collectives/regions.h"

namespace tutti::internal {

const AlgorithmClaims algorithms::reduce_scatter::hierarchical_claims{
    .idea = "each host combines what it has of each slice, and its owner what hosts send",
    .canonical = true,
    .several_leaves = true,
    .pipelined = true,
    .messages = "n (n-1) c",
    .bytes = "(n-1)/n M",
    .rounds = "1",
    .between_hosts = "(h-1)/h M/g",
};

Schedule algorithms::reduce_scatter::hierarchical(int rank, const Layout& layout, const Message& message) {
  const Hosts hosts(layout);
  Builder builder(rank, layout.ranks(), message.chunks, true);
  CanonicalReduction reduction(builder, layout, rank, held_by_hosts(layout, hosts, carriers_in_turn(hosts)));
  for (int k = 0; k < message.chunks + kChunksAhead; ++k) {
    if (k < message.chunks) reduction.combine_partials_ahead(k, message.chunks, kChunksAhead);
    if (k >= kChunksAhead) reduction.combine_result(output(rank, k - kChunksAhead), true);
  }
  return std::move(builder).build();
}

}  // namespace tutti::internal
