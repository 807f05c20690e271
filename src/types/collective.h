// What each collective is, as data: which rank gives what, and which gets what. The verifier, its oracle, the plans,
// the checks of buffers, the tools and the texts ask here. docs/design/collectives.md says what else a new one needs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string_view>

#include "tutti/types.h"

namespace tutti::internal {

// The message of a call is made of rows of `count` elements: one row, or one a rank. Which of them the buffers hold:
enum class Held : std::uint8_t {
  nothing,
  all,           // each rank: all rows
  own,           // rank r: row r, of one row a rank
  at_root,       // the root: all rows. The other ranks: none
  on_first,      // rank 0: all rows. The other ranks: none
  behind_first,  // rank 0: none. The other ranks: all rows
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
  constexpr bool has_bytes() const { return result != Result::nothing; }
  constexpr bool has_root() const { return input == Held::at_root || output == Held::at_root; }
  // A message of one row a rank is cut into exactly these; any other is cut as the algorithm likes.
  constexpr bool has_row_per_rank() const { return input == Held::own || output == Held::own; }
  constexpr int rows(int ranks) const { return has_row_per_rank() ? ranks : 1; }
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

// Rows [first, first + count) of a message.
struct RowRange {
  int first = 0, count = 0;
  bool holds(int row) const { return row >= first && row < first + count; }
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
  int origin(int row) const { return traits.input == Held::at_root ? root : traits.input == Held::on_first ? 0 : row; }

 private:
  int row_of(int slice) const { return traits.has_row_per_rank() ? slice : 0; }
  RowRange held(Held which, int rank) const {
    switch (which) {
      case Held::nothing: return {};
      case Held::all: return {0, rows()};
      case Held::own: return {rank, 1};
      case Held::at_root: return {0, rank == root ? rows() : 0};
      case Held::on_first: return {0, rank == 0 ? rows() : 0};
      case Held::behind_first: return {0, rank > 0 ? rows() : 0};
    }
    return {};
  }
};

}  // namespace tutti::internal
