// A schedule made ready to run: indices turned into byte offsets for one call's count and type. Made once per kind of
// call, cached.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <vector>

#include "collectives/catalogue.h"
#include "executor/host.h"
#include "executor/plan_step.h"
#include "reduce/reduction.h"
#include "schedule/partition.h"
#include "schedule/schedule.h"
#include "transport/transport.h"
#include "types/call.h"

namespace tutti::internal {

// How the elements of a call are cut under `schedule`: the executor and the benchmark's check both ask here. Slice and
// chunk boundaries fall on cache lines where the collective leaves them free.
Partition partition_for(const Schedule& schedule, DType dtype, std::size_t total_count);

// Elements of the largest buffer that a rank has: all rows of the message, or all that one rank gives or gets
// (types/collective.h).
std::size_t total_count(const Call& call, int ranks);

// Plan::in_place where the plan does not take it: no two buffers lie so.
inline constexpr std::ptrdiff_t kNotInPlace = std::numeric_limits<std::ptrdiff_t>::min();

// `rows` rows of row_bytes, at equal distances in the caller's buffer and in the slot. In bytes from the beginning of
// each; of the buffer, of the first part.
struct RowCopy {
  std::size_t buffer = 0, buffer_stride = 0;
  std::size_t slot = 0, slot_stride = 0;
  std::size_t row_bytes = 0, rows = 0;
  friend bool operator==(const RowCopy&, const RowCopy&) = default;
};

struct Plan {
  Call call;  // sequence 0
  Tag tag;    // of that
  std::vector<PlanStep> steps;
  std::vector<PlanSource> sources;
  std::vector<Reduction> reductions;
  std::vector<int> peers;        // that the schedule talks to, ascending
  std::vector<Traffic> traffic;  // by index in `peers`, over the whole schedule
  // The call ends before peers have read what lies in scratch. Else it gets back all that it sends.
  bool leaves_copies = false;
  std::size_t scratch_bytes = 0;
  // What the caller's buffers must be: bytes, and output - input when in place.
  std::size_t input_bytes = 0, output_bytes = 0;
  std::ptrdiff_t in_place = 0;
  std::uintptr_t alignment = 1;
  std::size_t most_sources = 0, most_pushes = 0;

  // The steps above do the call in parts [0, parts), one after the other. A shorter last part has its own plan, `last`.
  // The caller's buffers are rows of whole_row_bytes; each part takes the next row_bytes of every row.
  std::size_t parts = 1;
  std::unique_ptr<Plan> last;
  // If this plan copies something once for several ranks (Message::copies_once): what, and the plan that does not copy
  // it. That one is for memory that the others can read where it lies (Transport::shares). With copies_shared such
  // memory is copied too, and that plan is for transports whose peers read no memory of this rank.
  Copied copied = Copied::nothing;
  std::unique_ptr<Plan> uncopied;
  bool copies_shared = false;
  // Where rows are not all of one length there is one part, and row_bytes is the rank's longest.
  std::size_t row_bytes = 0, whole_row_bytes = 0;
  bool meets_on_device = false;  // ranks whose buffers lie on one device may do it there
  // How the rows of a packed part go from the caller's input to its slot, and from there to the caller's output.
  std::vector<RowCopy> fetches, deliveries;
  // Of a packed part: where input and output begin in memory that holds both, in place unless rows are exchanged, and
  // how much that is.
  std::size_t input_slot = 0, output_slot = 0, slot_bytes = 0;

  std::span<const PlanSource> sources_of(const ReduceStep& step) const {
    return std::span(sources).subspan(step.first_source, step.source_count);
  }
  bool has_bytes() const { return row_bytes > 0; }
  const Plan& part(std::size_t number) const { return last != nullptr && number + 1 == parts ? *last : *this; }
};

// How a long call is cut, all ranks alike; and where this rank has its rows.
struct Cut {
  std::size_t part_bytes = 0;  // of the whole message, about; 0: into one part
  bool packed = false;         // a part's rows lie one right behind the other, and not where the caller has them
  // Of different lengths: such a call is not cut, nor is that of an algorithm whose messages are of several rows.
  const CallRows* rows = nullptr;
  bool in_place = false;  // of rows that are exchanged: the output is the memory of the input
  // As of Message, where the memory is not such that others can read it. What follows only with copies_once.
  bool copies_once = false, copies_inputs = false;
  bool leaves_copies = false;  // the call need not wait until they have been read
  bool copies_shared = false;  // as of Plan
  int ahead = 0;               // as of Message
};

// chunks: of a slice, where the algorithm pipelines. custom: of a call of Op::custom; must outlive the plan. Throws
// Error{invalid_argument} where the algorithm does not take the layout, or rows of different lengths.
std::unique_ptr<Plan> make_plan(const Call& call, const AlgorithmEntry& entry, int rank, const Layout& layout,
                                int chunks = 1, const Host& host = {}, const Cut& cut = {},
                                const CustomOperator* custom = nullptr);

}  // namespace tutti::internal
