// The root sends to ranks half, a quarter, an eighth, ... of the way round, and each of those does the same for its
// part: every round doubles the number of ranks that have the message. Cut into chunks, a rank passes one on while the
// next arrives.
//
//          0
//        /   \           root 0; for another root all numbers are shifted by it
//       v     v
//      2       1
//      |
//      v
//      3
//
// Time: at most log n (c alpha + M beta) with c chunks, the root sending each chunk log n times
// Restrictions: none.
// Source: Johnsson, Ho, "Optimum broadcasting and personalized communication in hypercubes", IEEE Transactions on
// Computers 38(9), 1989.
#include "collectives/algorithms.h"
#include "collectives/peers.h"
#include "collectives/regions.h"
#include "schedule/builder.h"

namespace tutti::internal {

const AlgorithmClaims algorithms::broadcast::binomial_tree_claims{
    .idea = "every round doubles the number of ranks that have the message",
    .canonical = true,
    .several_leaves = true,
    .pipelined = true,
    .messages = "(n-1) c",
    .bytes = "log n M",
    .rounds = "at most log n",
};

Schedule algorithms::broadcast::binomial_tree(int rank, const Layout& layout, const Message& message) {
  const int n = layout.ranks();
  const int place = (rank - message.root + n) % n;  // in a tree rooted at 0
  const auto rank_at = [&](int other) { return (other + message.root) % n; };

  Builder builder(rank, 1, message.chunks);
  if (place != 0)
    for (int chunk = 0; chunk < message.chunks; ++chunk)
      builder.receive(rank_at(binomial_parent(place)), output(0, chunk));
  for (int chunk = 0; chunk < message.chunks; ++chunk) {
    if (place == 0) builder.copy(input(0, chunk), output(0, chunk));
    for (int child : binomial_children(place, n)) builder.send(rank_at(child), output(0, chunk));
  }
  return std::move(builder).build();
}

}  // namespace tutti::internal
