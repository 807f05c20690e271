// Slice r belongs to rank r: everyone sends it its input of that slice, it combines all n of them in one pass, and
// sends the result to everyone. The fewest bytes at the fewest rounds; partial results never travel.
//
//   slice:     0   1   2   3                     0   1   2   3
//   rank 0   | * | 1 | 2 | 3 |        rank 0   | T | < | < | < |    first the number is whom the input slice goes to,
//   rank 1   | 0 | * | 2 | 3 |  --->  rank 1   | < | T | < | < |    then T is combined there and goes to all others
//   rank 2   | 0 | 1 | * | 3 |        rank 2   | < | < | T | < |
//   rank 3   | 0 | 1 | 2 | * |        rank 3   | < | < | < | T |
//
// Time: 2 (n-1) c alpha + 2 (n-1)/n M beta + M gamma
// Restrictions: none. The sends stand right behind the reduction, so that where memory is shared one pass reads all
// inputs and writes all outputs. Long results in ordinary memory are copied once instead, to where all others read them
// (Message::copies_once), and inputs to where their owners do (Message::copies_inputs). In place nothing waits: a peer
// answers after it has read.
// Source: reduce-scatter by pairwise exchange, then all-gather: Thakur, Rabenseifner, Gropp, "Optimization of
// Collective Communication Operations in MPICH", IJHPCA 19(1), 2005, section 4; known as "two-shot" from GPU libraries.
#include "collectives/algorithms.h"
#include "collectives/canonical_tree.h"
#include "collectives/one_copy.h"
#include "collectives/peers.h"
#include "collectives/regions.h"

namespace tutti::internal {

const AlgorithmClaims algorithms::all_reduce::two_shot_claims{
    .idea = "a slice's owner combines all inputs of it, then sends the result to all",
    .canonical = true,
    .several_leaves = true,
    .pipelined = true,
    .copied_once = Copied::output,
    .messages = "2 n (n-1) c",
    .bytes = "2 (n-1)/n M",
    .rounds = "2",
};

Schedule algorithms::all_reduce::two_shot(int rank, const Layout& layout, const Message& message) {
  const std::vector<int> peers = peers_after(rank, layout.ranks());
  Builder builder(rank, layout.ranks(), message.chunks);
  CanonicalReduction reduction(builder, layout, rank, held_by_owners(layout), message.copies_inputs);

  // Inputs go a chunk ahead of results: while one chunk is combined the next is on its way.
  const auto receive = [&](int chunk) {
    for (int peer : peers) builder.receive(peer, output(peer, chunk));
  };
  OneCopy one_copy(builder, message.copies_once);
  reduction.combine_partials(0);
  for (int chunk = 0; chunk < message.chunks; ++chunk) {
    if (chunk + 1 < message.chunks) reduction.combine_partials(chunk + 1);
    reduction.combine_result(output(rank, chunk), true);
    const Region sent = one_copy.of(output(rank, chunk));
    for (int peer : peers) builder.send(peer, sent);
    if (chunk > 0) receive(chunk - 1);
  }
  receive(message.chunks - 1);
  return std::move(builder).build();
}

}  // namespace tutti::internal
