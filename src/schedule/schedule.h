// A schedule is one rank's part of a collective, as plain data: no memory, no clock, no I/O.
//
// A rank runs its steps in order. Three facts make every schedule easy to reason about:
//   - send never blocks: it LENDS a region of this rank's memory to the peer, until the peer has taken it;
//   - receive never blocks: it LENDS a region to be filled by the peer's message;
//   - reduce blocks until the messages among its sources are here, combines its sources along a fixed tree and stores
//     the result in a local region; wait_send and wait_receive block until what was lent has been given back.
// A schedule ends when everything it lent has been given back.
//
// Messages between an ordered pair of ranks are numbered from 0 as they are sent, and arrive in that order. A receive
// names the message that it takes, so that it can stand long before the message comes; a message among the sources of a
// reduce is the first of that peer that no step before has taken.
//
// Regions are named by (space, row, slice, chunk), never by byte offsets, so one schedule serves every element count:
// the elements of a message are cut into `slices`, and each slice into `chunks` (see partition.h).
//
// A message is one region, or several rows that lie side by side at either end: rows of relay, or of a caller's buffer.
// It names the slice of each. Slices must be rows of the message then, all of one length, in one chunk, and nothing may
// be combined.
#pragma once

#include <compare>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace tutti::internal {

enum class Space : std::uint8_t {
  input,    // the caller's input; row = this rank's leaf, 0 unless the rank contributes several
  output,   // the caller's output; row 0. In place, output row 0 is the same memory as input row 0
  scratch,  // the executor's; holds partial results in the accumulation type. A row holds one slice, its chunks side by
            // side
  relay,    // other rows of the same memory: hold elements as they are
};
inline bool is_scratch(Space space) { return space >= Space::scratch; }

// One chunk of one slice of one row of a space. In scratch and relay, (row, chunk) names the memory and `slice` its
// length.
struct Region {
  Space space = Space::input;
  std::uint16_t row = 0;
  std::uint32_t slice = 0;
  std::uint16_t chunk = 0;
  friend auto operator<=>(const Region&, const Region&) = default;
};

// What a message lends: a region, or that row and those of further slices that lie behind it, side by side.
struct Extent {
  Extent(const Region& only) : first(only) {}  // NOLINT(google-explicit-constructor): most messages are one region
  Extent(const Region& begin, std::vector<std::uint32_t> behind) : first(begin), further(std::move(behind)) {}

  Region first;
  std::vector<std::uint32_t> further;
};

inline constexpr int kLocal = -1;

// One source of a reduce: a local region, or the next message from a peer.
//
// The sources stand in leaf order; the tree over them is in postfix form: push the source, then `joins` times replace
// the two topmost partial results (a below, b on top) by a op b. After the last source exactly one is left.
//   ((x0 x1) (x2 x3)) has joins 0 1 0 2;   ((x0 x1) x2) has joins 0 1 1;   (x0 (x1 x2)) has joins 0 0 2.
struct Source {
  std::int32_t peer = kLocal;  // kLocal, or the rank whose next message this is
  Region region;               // where it lies here; of a message: slice and chunk say what it carries
  std::uint8_t joins = 0;
  bool partial = false;  // elements of the accumulation type (whatever comes from scratch), not of the element type
  friend bool operator==(const Source&, const Source&) = default;
};

enum class StepKind : std::uint8_t { send, receive, reduce, wait_send, wait_receive };

struct Step {
  StepKind kind = StepKind::reduce;
  bool finish = false;           // reduce: this is the result: divide for avg, round to the element type, canonical NaN
  std::uint16_t part_count = 0;  // reduce: of its sources; send, receive: of the rows behind `region`
  std::int32_t peer = kLocal;    // send, receive, wait_*
  Region region;                 // send, receive: what is lent, or its first row; reduce: where the result goes
  std::uint32_t first_part = 0;  // [first_part, first_part + part_count) of Schedule::sources, or of further_slices
  std::uint32_t message = 0;     // receive: which message of `peer` it takes, of this schedule, from 0; ascending
                              // wait_*: the number of messages to (or posted receives from) `peer`, counted from this
                              // schedule's start, that must have been given back
  friend bool operator==(const Step&, const Step&) = default;
};
static_assert(sizeof(Step) <= 32);

struct Schedule {
  int rank = 0;
  int slices = 1;             // the same on every rank
  int chunks = 1;             // of each slice; the same on every rank
  int scratch_rows = 0;       // on this rank
  bool exact_slices = false;  // slices are the message's rows (types/collective.h), of the lengths that the call says
  std::vector<Step> steps;
  std::vector<Source> sources;
  std::vector<std::uint32_t> further_slices;  // of messages of several rows, but for their first

  // Of a reduce.
  std::span<const Source> sources_of(const Step& step) const {
    return std::span(sources).subspan(step.first_part, step.part_count);
  }
  // Of a send or receive: of how many rows its message is, and where row i of them lies.
  static std::size_t rows_of(const Step& step) { return std::size_t{1} + step.part_count; }
  Region row_of(const Step& step, std::size_t i) const {
    Region row = step.region;
    if (i == 0) return row;
    if (is_scratch(row.space)) row.row = static_cast<std::uint16_t>(row.row + i);
    row.slice = further_slices[step.first_part + i - 1];
    return row;
  }
  friend bool operator==(const Schedule&, const Schedule&) = default;
};

}  // namespace tutti::internal
