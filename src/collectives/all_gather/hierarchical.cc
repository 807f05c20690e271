// For hosts of several ranks: everyone sends its slice to its neighbours and once to each other host, where the ranks
// take turns in passing on to the others what comes. The second half of all_reduce/hierarchical.
//
//   2 hosts x 2 ranks:     slice 0       slice 1       slice 2       slice 3      all at once: every rank sends M/4 to
//                          0 --> 1       0 <-- 1       0 --> 1       0 <-- 1      the other host
//                          |                   |       ^                   ^
//                          v                   v       |                   |
//                          2 --> 3       2 <-- 3       2 --> 3       2 <-- 3
//
// Time: (h-1) (c alpha + M/n beta) between hosts, and within them at most (n-1) (c alpha + M/n beta), with c
//       chunks; one behind the other for one chunk, side by side for many
// Restrictions: none. Messages, bytes and rounds are those of n ranks on one host, where it is one_shot; on h > 1 hosts
// the rounds are at most 2. What crosses is said of g ranks on each host.
//
// Source: Kandalla, Subramoni, Santhanaraman, Koop, Panda, "Designing multi-leader-based Allgather algorithms for
// multi-core clusters", IPDPS 2009.
#include "collectives/algorithms.h"
#include "collectives/regions.h"
#include "collectives/spread.h"

namespace tutti::internal {

const AlgorithmClaims algorithms::all_gather::hierarchical_claims{
    .idea = "each slice goes to each host once and is passed on there",
    .canonical = true,
    .several_leaves = true,
    .pipelined = true,
    .messages = "n (n-1) c",
    .bytes = "(n-1)/n M",
    .rounds = "1",
    .between_hosts = "(h-1)/h M/g",
};

Schedule algorithms::all_gather::hierarchical(int rank, const Layout& layout, const Message& message) {
  const Hosts hosts(layout);
  const Carriers carriers = carriers_in_turn(hosts);
  Builder builder(rank, layout.ranks(), message.chunks, true);
  Spread spread(builder, hosts, carriers, rank, [&](int peer, Region from) { builder.send(peer, from); });

  for (int chunk = 0; chunk < message.chunks; ++chunk) spread.receive_from_owners(chunk);
  for (int chunk = 0; chunk < message.chunks; ++chunk) spread.receive_from_carriers(chunk);
  for (int chunk = 0; chunk < message.chunks; ++chunk) {
    builder.copy(input(rank, chunk), output(rank, chunk));
    spread.send_own(input(rank, chunk));
  }
  for (int chunk = 0; chunk < message.chunks; ++chunk) spread.pass_on(chunk);
  return std::move(builder).build();
}

}  // namespace tutti::internal
