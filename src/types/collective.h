// What each collective is, as data: which rank gives what, and which gets what. The verifier, its oracle, the plans,
// the checks of buffers, the tools and the texts ask here. docs/design/collectives.md says what else a new one needs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string_view>

#include "tutti/types.h"

namespace tutti::internal {

// The message of a call is made of rows of `count` elements: one row, one a rank, or one from each rank to each. Which
// of them the buffers hold:
enum class Held : std::uint8_t {
  nothing,
  all,           // each rank: all rows
  own,           // rank r: row r, of one row a rank
  at_root,       // the root: all rows. The other ranks: none
  on_first,      // rank 0: all rows. The other ranks: none
  behind_first,  // rank 0: none. The other ranks: all rows
  to_each,       // rank r of n: rows [r * n, (r + 1) * n), row r * n + s being for rank s
  from_each,     // rank s of n: rows s, n + s, ..., row r * n + s being from rank r
};

// What an output row is.
enum class Result : std::uint8_t {
  nothing,        // no bytes move: that one rank ends says that all have begun
  moved,          // the row of the one rank whose input holds it
  combined,       // the combination of all ranks' rows
  prefix,         // that of the ranks up to the one that gets it
  prefix_before,  // that of the ranks before the one that gets it
};

struct CollectiveTraits {
  Collective collective;
  std::string_view name;
  Held input, output;
  Result result;

  constexpr bool combines() const { return result == Result::combined || is_scan(); }
  constexpr bool is_scan() const { return result == Result::prefix || result == Result::prefix_before; }
  // Each rank's buffers have all rows, so each knows how long all of them are.
  constexpr bool shows_all_rows() const { return input == Held::all || output == Held::all; }
  constexpr bool has_bytes() const { return result != Result::nothing; }
  constexpr bool has_root() const { return input == Held::at_root || output == Held::at_root; }
  // Each row goes from one rank to another, and lies elsewhere in the output than in the input.
  constexpr bool exchanges() const { return input == Held::to_each; }
  // A message of several rows is cut into exactly these; any other is cut as the algorithm likes.
  constexpr bool has_rows() const { return input == Held::own || output == Held::own || exchanges(); }
  // Of the message; and of the largest buffer of a rank, which says how long a call is.
  constexpr int rows(int ranks) const { return exchanges() ? ranks * ranks : buffer_rows(ranks); }
  constexpr int buffer_rows(int ranks) const { return has_rows() ? ranks : 1; }
};

inline constexpr CollectiveTraits kCollectives[] = {
    {Collective::all_reduce, "all_reduce", Held::all, Held::all, Result::combined},
    {Collective::reduce_scatter, "reduce_scatter", Held::all, Held::own, Result::combined},
    {Collective::all_gather, "all_gather", Held::own, Held::all, Result::moved},
    {Collective::broadcast, "broadcast", Held::at_root, Held::all, Result::moved},
    {Collective::barrier, "barrier", Held::nothing, Held::nothing, Result::nothing},
    {Collective::reduce, "reduce", Held::all, Held::at_root, Result::combined},
    {Collective::gather, "gather", Held::own, Held::at_root, Result::moved},
    {Collective::scatter, "scatter", Held::at_root, Held::own, Result::moved},
    {Collective::scan, "scan", Held::all, Held::all, Result::prefix},
    {Collective::exclusive_scan, "exclusive_scan", Held::all, Held::behind_first, Result::prefix_before},
    {Collective::transfer, "transfer", Held::on_first, Held::behind_first, Result::moved},
    {Collective::all_to_all, "all_to_all", Held::to_each, Held::from_each, Result::moved},
};
inline constexpr std::size_t kCollectiveCount = std::size(kCollectives);
static_assert(
    [] {
      for (std::size_t i = 0; i < kCollectiveCount; ++i)
        if (kCollectives[i].collective != static_cast<Collective>(i)) return false;
      return true;
    }(),
    "in the order of the enumerators");

// A peer's number may be no enumerator.
inline constexpr CollectiveTraits kNoCollective{Collective{0xff}, kNoName, Held::nothing, Held::nothing, Result::moved};

// Of what is no collective: kNoCollective.
constexpr const CollectiveTraits& traits_of(Collective collective) {
  const auto i = static_cast<std::size_t>(collective);
  return i < kCollectiveCount ? kCollectives[i] : kNoCollective;
}

// The rows first, first + step, ... of a message: `count` of them, one behind the other in a buffer. In place, the
// buffer begins `at` rows behind the beginning of the memory that the rank's input and output share.
struct RowRange {
  int first = 0, count = 0, step = 1, at = 0;
  bool holds(int row) const { return row >= first && (row - first) % step == 0 && (row - first) / step < count; }
  // Which row of the buffer it is, from 0.
  int index(int row) const { return (row - first) / step; }
  // Which row of the shared memory.
  int position(int row) const { return at + index(row); }
};

// Who holds what in a call of `ranks` ranks.
struct Distribution {
  const CollectiveTraits& traits;
  int ranks, root;

  Distribution(Collective collective, int of_ranks, int from_or_to = 0)
      : traits(traits_of(collective)), ranks(of_ranks), root(from_or_to) {}

  int rows() const { return traits.rows(ranks); }
  RowRange input(int rank) const { return held(traits.input, rank); }
  RowRange output(int rank) const { return held(traits.output, rank); }
  // Whether a rank's buffer holds a slice: the row, where slices are rows.
  bool gives(int rank, int slice) const { return input(rank).holds(row_of(slice)); }
  bool gets(int rank, int slice) const { return output(rank).holds(row_of(slice)); }
  // Of what is moved: the rank whose input holds the row.
  int origin(int row) const {
    if (traits.input == Held::at_root) return root;
    if (traits.input == Held::on_first) return 0;
    return traits.exchanges() ? row / ranks : row;
  }
  // Where a slice that the rank holds lies in memory that input and output share: its row there, if slices are rows.
  int input_position(int rank, int slice) const { return traits.has_rows() ? input(rank).position(slice) : slice; }
  int output_position(int rank, int slice) const { return traits.has_rows() ? output(rank).position(slice) : slice; }

 private:
  int row_of(int slice) const { return traits.has_rows() ? slice : 0; }
  RowRange held(Held which, int rank) const {
    switch (which) {
      case Held::nothing: return {};
      case Held::all: return {0, rows()};
      case Held::own: return {.first = rank, .count = 1, .at = rank};
      case Held::at_root: return {0, rank == root ? rows() : 0};
      case Held::on_first: return {0, rank == 0 ? rows() : 0};
      case Held::behind_first: return {0, rank > 0 ? rows() : 0};
      case Held::to_each: return {.first = rank * ranks, .count = ranks};
      case Held::from_each: return {.first = rank, .count = ranks, .step = ranks};
    }
    return {};
  }
};

}  // namespace tutti::internal
