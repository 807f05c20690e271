// Blocks of 1, 2, 4, ... ranks, aligned and clipped to n, are the nodes of the canonical tree: in each round two
// neighbouring blocks exchange their values, and every rank of both then knows the value of the block of both.
// Everything everywhere in log n rounds.
//
//   rank     0         1         2         3
//            x0 <----> x1        x2 <----> x3
//          T[0,2)    T[0,2)    T[2,4)    T[2,4)
//             <------------------->               0 with 2, 1 with 3
//          T[0,4)    T[0,4)    T[0,4)    T[0,4)
//
// Where the right block is clipped to fewer ranks than the left one, each of them serves several of the left:
//   n = 5, last round: rank 4 sends x4 to ranks 0, 1, 2 and 3, and gets T[0,4) from rank 0.
//
// Time: log n (alpha + M beta + 2 M gamma) where n is a power of two, each rank sending log n M; just above one, a
//       rank sends n - 1
// Restrictions: one leaf a rank.
// Source: Thakur, Rabenseifner, Gropp, "Optimization of Collective Communication Operations in MPICH", IJHPCA 19(1),
// 2005, section 4.5, for powers of two. Clipping: T[0, n) splits at the largest power of two below n, so every node of
// T is an aligned block cut off at n.
#include <algorithm>

#include "collectives/algorithms.h"
#include "collectives/regions.h"
#include "schedule/builder.h"

namespace tutti::internal {

const AlgorithmClaims algorithms::all_reduce::recursive_doubling_claims{
    .idea = "aligned blocks of ranks exchange their values and merge, all ranks in step",
    .canonical = true,
    .several_leaves = false,
    .pipelined = false,
    .messages = "at most n log n",
    .bytes = "at most (n-1) M",
    .rounds = "log n",
};
namespace {

struct Block {
  int begin;
  int size;
  bool has(int rank) const { return rank >= begin && rank < begin + size; }
};

// Every rank of `left` gets the value of `right` and the other way round; left.size >= right.size.
// Sends to all that `rank` serves; returns whom it hears from.
int exchange(Builder& builder, int rank, Block left, Block right, Region mine) {
  if (left.has(rank)) {
    const int place = rank - left.begin;
    if (place < right.size) builder.send(right.begin + place, mine);
    return right.begin + place % right.size;
  }
  const int place = rank - right.begin;
  for (int other = place; other < left.size; other += right.size) builder.send(left.begin + other, mine);
  return left.begin + place;
}

}  // namespace

Schedule algorithms::all_reduce::recursive_doubling(int rank, const Layout& layout, const Message&) {
  const int n = layout.ranks();
  Builder builder(rank, 1);
  Region mine = input();  // holds the value of this rank's block
  int rows = 0;           // two in turn: one is lent while the other is written
  for (int size = 1; size < n; size *= 2) {
    const int begin = rank / (2 * size) * (2 * size);
    if (begin + size >= n) continue;  // no right block: this one is already the parent
    const Block left{begin, size}, right{begin + size, std::min(size, n - begin - size)};
    const int peer = exchange(builder, rank, left, right, mine);

    const Block& theirs = left.has(rank) ? right : left;
    std::vector<Source> sources{Builder::local(mine), Builder::message(peer, input(), theirs.size > 1)};
    if (right.has(rank)) std::swap(sources[0], sources[1]);
    sources[1].joins = 1;

    // The last result goes straight to the output, unless the input is lent now: in place they are one memory.
    if (2 * size >= n && mine.space == Space::scratch) {
      builder.reduce(std::move(sources), output(), true);
      return std::move(builder).build();
    }
    mine = scratch(rows < 2 ? builder.new_scratch_row() : rows % 2);
    ++rows;
    builder.reduce(std::move(sources), mine);
  }
  builder.copy(mine, output(), true);
  return std::move(builder).build();
}

}  // namespace tutti::internal
