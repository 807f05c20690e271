// Blocks of 1, 2, 4, ... ranks are nodes of the canonical tree. In each round two neighbouring blocks meet, rank by
// rank: the left one gives its total, which the ranks of the right one put before what they have. Where more ranks
// follow, the right one gives its total too, and both then know the total of both.
//
//   rank     0         1         2         3
//            x0 <----> x1        x2 -----> x3          totals T[0,2); rank 3 has T[2,4)
//            T[0,2) ------------> x2                   0 to 2, 1 to 3: T[0,2) before x2, and before T[2,4)
//                      T[0,2) -----------> T[2,4)
//            T[0,1)    T[0,2)    T[0,3)    T[0,4)
//
// The prefix T[0, k) is a full block of the largest power of two below k, before the prefix of the rest: so this order
// is the canonical one for every rank.
//
// Time: at most log n (alpha + M beta + 6 M gamma)
// Restrictions: one leaf a rank.
// Source: Hillis, Steele, "Data parallel algorithms", Communications of the ACM 29(12), 1986; by blocks, as in MPICH's
// recursive doubling scan.
#include "collectives/algorithms.h"
#include "collectives/prefix.h"
#include "collectives/regions.h"
#include "schedule/builder.h"

namespace tutti::internal {

const AlgorithmClaims algorithms::scan::recursive_doubling_claims{
    .idea = "neighbouring blocks of ranks meet; the left one's total goes before what the right one has",
    .canonical = true,
    .several_leaves = false,
    .pipelined = false,
    .messages = "at most n log n",
    .bytes = "at most log n M",
    .rounds = "log n",
};

namespace {

class PrefixByDoubling {
 public:
  PrefixByDoubling(int rank, int ranks, Prefix prefix)
      : rank_(rank), ranks_(ranks), has_result_(prefix == Prefix::inclusive), builder_(rank, 1) {}

  Schedule build() && {
    for (int size = 1; size < ranks_; size *= 2) {
      const int begin = rank_ / (2 * size) * (2 * size);
      const bool is_right = rank_ >= begin + size, more_follow = begin + 2 * size < ranks_;
      const int peer = is_right ? rank_ - size : rank_ + size;
      if (peer >= ranks_) continue;
      if (!is_right || more_follow) builder_.send(peer, total_);
      const Source theirs = Builder::message(peer, input(), size > 1);
      const bool is_last = rank_ < 2 * size;  // no block is left of the one that the two make
      if (is_right && more_follow) {
        const Region got = scratch(row(got_row_));
        builder_.reduce({theirs}, got);
        const Region before = total_;
        add_total(Builder::local(got), Builder::local(before));
        prepend(Builder::local(got), is_last);
      } else if (is_right) {
        prepend(theirs, is_last);
      } else if (more_follow) {
        add_total(Builder::local(total_), theirs);
      }
    }
    if (rank_ == 0 && has_result_) builder_.copy(input(), output(), true);
    return std::move(builder_).build();
  }

 private:
  int row(int& number) {
    if (number < 0) number = builder_.new_scratch_row();
    return number;
  }
  // In two rows in turn: one is lent while the other is written.
  void add_total(Source below, Source top) {
    top.joins = 1;
    total_ = scratch(row(total_rows_[turn_]));
    turn_ = 1 - turn_;
    builder_.reduce({below, top}, total_);
  }
  void prepend(Source before, bool is_last) {
    const Region to = is_last ? output() : scratch(row(result_row_));
    std::vector<Source> sources{before};
    if (has_result_) {
      sources.push_back(Builder::local(result_));
      sources.back().joins = 1;
    }
    builder_.reduce(std::move(sources), to, is_last);
    result_ = to;
    has_result_ = true;
  }

  const int rank_, ranks_;
  bool has_result_;
  Builder builder_;
  Region total_ = input(), result_ = input();  // of this rank's block; of its part up to this rank
  int got_row_ = -1, result_row_ = -1, total_rows_[2] = {-1, -1}, turn_ = 0;
};

}  // namespace

Schedule prefix_by_doubling(int rank, int ranks, Prefix prefix) {
  return PrefixByDoubling(rank, ranks, prefix).build();
}

Schedule algorithms::scan::recursive_doubling(int rank, const Layout& layout, const Message&) {
  return prefix_by_doubling(rank, layout.ranks(), Prefix::inclusive);
}

}  // namespace tutti::internal
