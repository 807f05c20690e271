// For hosts of several ranks. Each host combines its own inputs of every slice to its nodes of the canonical tree, as
// large ones as it has; a slice's owner combines those of all hosts; and the result goes once to each other host, to be
// passed on there. Every rank does so for its share of slices, so that of M bytes only about M/g cross per rank.
//
//   2 hosts x 2 ranks, slice 0 (owner 0):                 slice 1 is combined on 3 and 1, slice 2 on 0 and 2, slice 3
//                                                         on 1 and 3: every rank sends one partial result of M/4 to
//     host A      host B         host A      host B       the other host, and one result
//
//     0  <-- 1    2  <-- 3       0  --> 1    2  --> 3     <-- and --> within a host, over shared memory
//     ^           |              |           ^
//     '--T[2,4)---'              '-----T-----'            between hosts
//
// Time: 2 (h-1) (c alpha + M/n beta) between hosts, and within them at most 2 (n-1) (c alpha + M/n beta)
//       + 2 M gamma, with c chunks; one behind the other for one chunk, side by side for many
// Restrictions: none. Messages, bytes and rounds are those of n ranks on one host, where it is two_shot; on h > 1 hosts
// that hold g ranks each, an aligned power of two, the rounds are at most 4. What crosses is said of these; other hosts
// have several largest nodes, and more crosses: README.md has a table.
//
// Source: slices' owners spread over all ranks of a host as in Bayatpour, Chakraborty, Subramoni, Lu, Panda, "Scalable
// reduction collectives with data partitioning-based multi-leader design", SC 2017; here over the nodes of T, for which
// see held_by_hosts.h.
#include "collectives/algorithms.h"
#include "collectives/held_by_hosts.h"
#include "collectives/regions.h"
#include "collectives/spread.h"

namespace tutti::internal {

const AlgorithmClaims algorithms::all_reduce::hierarchical_claims{
    .idea = "each host combines what it has of each slice, hosts exchange that, results cross to each host once",
    .canonical = true,
    .several_leaves = true,
    .pipelined = true,
    .messages = "2 n (n-1) c",
    .bytes = "2 (n-1)/n M",
    .rounds = "2",
    .between_hosts = "2 (h-1)/h M/g",
};

// Results are combined kChunksAhead behind partials, received everywhere as far behind that, and so on: each link is
// busy with some chunks while ranks work on others. Between two ranks, in each round of the loop first the inputs for
// partials of chunk k + kChunksAhead are sent, then what the result of chunk k needs, the result k - kChunksAhead, and
// what is passed on; in the round that is kChunksAhead later they are received in this order.
Schedule algorithms::all_reduce::hierarchical(int rank, const Layout& layout, const Message& message) {
  const Hosts hosts(layout);
  const Carriers carriers = carriers_in_turn(hosts);
  Builder builder(rank, layout.ranks(), message.chunks);
  CanonicalReduction reduction(builder, layout, rank, held_by_hosts(layout, hosts, carriers));
  Spread spread(builder, hosts, carriers, rank, [&](int peer, Region from) { reduction.send(peer, from); });

  const auto exists = [&](int chunk) { return chunk >= 0 && chunk < message.chunks; };
  for (int k = 0; k < message.chunks + 3 * kChunksAhead; ++k) {
    if (exists(k)) reduction.combine_partials_ahead(k, message.chunks, kChunksAhead);
    if (const int chunk = k - kChunksAhead; exists(chunk)) {
      reduction.combine_result(output(rank, chunk), true);
      spread.send_own(output(rank, chunk));
    }
    if (const int chunk = k - 2 * kChunksAhead; exists(chunk)) {
      spread.receive_from_owners(chunk);
      spread.pass_on(chunk);
    }
    if (const int chunk = k - 3 * kChunksAhead; exists(chunk)) spread.receive_from_carriers(chunk);
  }
  return std::move(builder).build();
}

}  // namespace tutti::internal
