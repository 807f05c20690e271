// Everyone sends its input to all ranks behind it, and each combines what it has by itself. One message's latency: for
// messages so small that only latency counts.
//
//   rank 0    rank 1    rank 2    rank 3
//     x0 -----> x1        x2        x3       each to all ranks behind it (drawn: rank 0)
//     x0 ---------------> x2        x3
//     x0 -------------------------> x3
//   T[0,1)    T[0,2)    T[0,3)    T[0,4)
//
// Time: (n-1) alpha + (n-1) M beta + n M gamma
// Restrictions: one leaf a rank. The result is made in scratch where the input is lent: in place they are one memory.
// Source: the linear scan of Open MPI's "basic" component, with all messages sent at once.
#include "collectives/algorithms.h"
#include "collectives/prefix.h"
#include "collectives/regions.h"
#include "schedule/builder.h"

namespace tutti::internal {

const AlgorithmClaims algorithms::scan::one_shot_claims{
    .idea = "everyone sends its input to all ranks behind it",
    .canonical = true,
    .several_leaves = false,
    .pipelined = false,
    .messages = "n (n-1)/2",
    .bytes = "(n-1) M",
    .rounds = "1",
};

Schedule prefix_in_one_shot(int rank, int ranks, Prefix prefix) {
  const int inputs = prefix == Prefix::inclusive ? rank + 1 : rank;
  Builder builder(rank, 1);
  for (int peer = rank + 1; peer < ranks; ++peer) builder.send(peer, input());
  if (inputs == 0) return std::move(builder).build();

  std::vector<int> bounds;
  for (int bound = 0; bound <= inputs; ++bound) bounds.push_back(bound);
  const std::vector<std::uint8_t> joins = canonical_joins(bounds);
  std::vector<Source> sources;
  for (int source = 0; source < inputs; ++source) {
    sources.push_back(source == rank ? Builder::local(input()) : Builder::message(source, input(), false));
    sources.back().joins = joins[static_cast<std::size_t>(source)];
  }
  const bool is_lent = rank + 1 < ranks && rank > 0;
  const Region result = is_lent ? scratch(builder.new_scratch_row()) : output();
  builder.reduce(std::move(sources), result, !is_lent);
  if (is_lent) builder.copy(result, output(), true);
  return std::move(builder).build();
}

Schedule algorithms::scan::one_shot(int rank, const Layout& layout, const Message&) {
  return prefix_in_one_shot(rank, layout.ranks(), Prefix::inclusive);
}

}  // namespace tutti::internal
