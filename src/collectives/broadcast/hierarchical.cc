// For hosts of several ranks. The message is cut into as many slices as the largest host has ranks; the root gives each
// of its neighbours one to carry, slices go from host to host as down a chain, each carried by another rank, and a
// carrier gives what it gets to its neighbours. So every byte enters a host once, through all its ranks alike.
//
//   2 hosts x 2 ranks, root 0:     slice 0     0 --> 1       slice 1     0 --> 1      0 and 2 carry slice 0, 1 and 3
//                                              |                               |      carry slice 1
//                                              v                               v
//                                              2 --> 3                   2 <-- 3
//
// Time: (h + c - 2) (alpha + M/(g c) beta) between hosts, and within them 2 (g-1) (c alpha + M/g beta), with c
//       chunks, side by side
// Restrictions: none. Messages, bytes and rounds are those of n ranks on one host; on h > 1 hosts the rounds are at
// most h + 1. What crosses is said of g ranks on each host; where one has fewer, they carry several slices each.
//
// Source: scatter and all-gather (Barnett, Gupta, Payne, Shuler, van de Geijn, Watts, "Interprocessor collective
// communication library (InterCom)", SHPCC 1994) within hosts, the chain of broadcast/chain.cc between them.
#include "collectives/algorithms.h"
#include "collectives/hosts.h"
#include "collectives/regions.h"
#include "schedule/builder.h"

namespace tutti::internal {

const AlgorithmClaims algorithms::broadcast::hierarchical_claims{
    .idea = "slices go from host to host, carried by all ranks of a host, and are passed on there",
    .canonical = true,
    .several_leaves = true,
    .pipelined = true,
    .messages = "n (n-1) c",
    .bytes = "2 (n-1)/n M",
    .rounds = "at most 2",
    .between_hosts = "M/g",
};
namespace {

// The slices' ways from host to host, beginning at the root's.
class Chain {
 public:
  Chain(const Hosts& hosts, int root) : hosts_(hosts), root_(root) {}

  int carrier(int slice, int host) const {
    const std::vector<int>& ranks = hosts_.ranks(host);
    return ranks[slice % ranks.size()];
  }

  // Whom `rank` gets the slice from. Requires that it is not the root.
  int source(int slice, int rank) const {
    const int host = hosts_.of(rank), carries = carrier(slice, host);
    if (carries != rank) return carries;
    return host == hosts_.of(root_) ? root_ : carrier(slice, (host + hosts_.count() - 1) % hosts_.count());
  }

  // Whom `rank` gives it to, the next host first: it has the longest way.
  std::vector<int> targets(int slice, int rank) const {
    const int host = hosts_.of(rank), next = (host + 1) % hosts_.count(), carries = carrier(slice, host);
    if (carries != rank) return rank == root_ ? std::vector{carries} : std::vector<int>{};
    std::vector<int> targets;
    if (next != hosts_.of(root_)) targets.push_back(carrier(slice, next));
    for (int neighbour : hosts_.neighbours(rank))
      if (neighbour != root_) targets.push_back(neighbour);
    return targets;
  }

 private:
  const Hosts& hosts_;
  int root_;
};

}  // namespace

Schedule algorithms::broadcast::hierarchical(int rank, const Layout& layout, const Message& message) {
  const Hosts hosts(layout);
  const int slices = hosts.most_ranks();
  const Chain chain(hosts, message.root);

  Builder builder(rank, slices, message.chunks);
  if (rank != message.root)
    for (int chunk = 0; chunk < message.chunks; ++chunk)
      for (int slice = 0; slice < slices; ++slice) builder.receive(chain.source(slice, rank), output(slice, chunk));
  for (int chunk = 0; chunk < message.chunks; ++chunk)
    for (int slice = 0; slice < slices; ++slice) {
      if (rank == message.root) builder.copy(input(slice, chunk), output(slice, chunk));
      for (int target : chain.targets(slice, rank)) builder.send(target, output(slice, chunk));
    }
  return std::move(builder).build();
}

}  // namespace tutti::internal
