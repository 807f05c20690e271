// log n rounds. A row that has to go d ranks on goes 2^k ranks on in round k if bit k of d is set. All rows that go in
// a round are packed, and go in one message.
//
//   round 0, to the next rank:   d = 1 and 3       row 0 to 3 of 4 ranks, d = 3: in round 0 to rank 1,
//   round 1, two ranks on:       d = 2 and 3                                     in round 1 from there to rank 3
//
// Time: log n (alpha + M/2 beta + M/2 gamma), the last for copies
// Restrictions: rows of one length. M is a rank's input. A row is sent as often as d has bits set, log n / 2 times in
// the mean, and copied before it goes and where it ends. A rank keeps all that it sends and gets: up to log n M.
// Source: Bruck, Ho, Kipnis, Upfal, Weathersby, "Efficient algorithms for all-to-all communications in multiport
// message-passing systems", IEEE Transactions on Parallel and Distributed Systems 8(11), 1997. There, rows are rotated
// first and last; here each is taken from where it lies.
#include <algorithm>
#include <vector>

#include "collectives/algorithms.h"
#include "collectives/regions.h"
#include "schedule/builder.h"

namespace tutti::internal {

const AlgorithmClaims algorithms::all_to_all::bruck_claims{
    .idea = "log n rounds, in each of which half the rows go in one message",
    .canonical = true,
    .several_leaves = true,
    .pipelined = false,
    .joins_rows = true,
    .messages = "n log n",
    .bytes = "at most log n M/2",
    .rounds = "at most log n",
};

namespace {

// One rank's rows on their way. A row is known by its distance: how many ranks on it has to go.
class Passage {
 public:
  Passage(int rank, int n) : rank_(rank), n_(n), builder_(rank, n * n, 1, true) {
    for (int distance = 0; distance < n; ++distance) here_.push_back(input(slice_of(rank, distance)));
  }

  Schedule run() && {
    int step = 1;
    for (; step < n_; step *= 2) {
      pass_on(step);
      deliver(step / 2);  // what came in the round before, while that of this one is under way
    }
    deliver(step / 2);
    return std::move(builder_).build();
  }

 private:
  // Of the row that `origin` has for the rank so far on.
  int slice_of(int origin, int distance) const { return row_between(origin, (origin + distance) % n_, n_); }
  int before(int rank, int ranks) const { return (rank - ranks % n_ + n_) % n_; }

  // The round in which rows go `step` ranks on. Those with a lower bit in their distances have come that far already.
  void pass_on(int step) {
    std::vector<int> distances, sent, received;
    const int from = before(rank_, step);
    for (int distance = step; distance < n_; ++distance) {
      if ((distance & step) == 0) continue;
      distances.push_back(distance);
      sent.push_back(slice_of(before(rank_, distance % step), distance));
      received.push_back(slice_of(before(from, distance % step), distance));
    }
    const int count = static_cast<int>(distances.size());
    const int out = builder_.new_scratch_rows(count), in = builder_.new_scratch_rows(count);
    builder_.receive(from, relays(in, received));
    for (int i = 0; i < count; ++i) builder_.copy(here_[distances[i]], relay(out + i, sent[i]));
    builder_.send((rank_ + step) % n_, relays(out, sent));
    for (int i = 0; i < count; ++i) here_[distances[i]] = relay(in + i, received[i]);
  }

  // The rows that end with the round of that step, which is the highest bit of their distances; 0: the rank's own.
  void deliver(int step) {
    for (int distance = step; distance < std::min(std::max(2 * step, 1), n_); ++distance)
      builder_.copy(here_[distance], output(slice_of(before(rank_, distance), distance)));
  }

  const int rank_, n_;
  Builder builder_;
  std::vector<Region> here_;  // where this rank has the row, by distance
};

}  // namespace

Schedule algorithms::all_to_all::bruck(int rank, const Layout& layout, const Message&) {
  return Passage(rank, layout.ranks()).run();
}

}  // namespace tutti::internal
