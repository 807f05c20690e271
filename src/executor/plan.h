// A schedule made ready to run: indices turned into byte offsets for one call's count and type. Made once per kind of
// call, cached.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "collectives/catalogue.h"
#include "reduce/reduction.h"
#include "schedule/partition.h"
#include "schedule/schedule.h"
#include "transport/transport.h"
#include "types/call.h"

namespace tutti::runtime {

// How the elements of a call are cut under `schedule`: the executor and the benchmark's check both ask here. Slice and
// chunk boundaries fall on cache lines where the collective leaves them free.
Partition partition_for(const Schedule& schedule, DType dtype, std::size_t total_count);

// Elements that the whole message has: count, or ranks * count for all-gather and reduce-scatter.
std::size_t total_count(const Call& call, int ranks);

struct PlanSource {
  std::int32_t peer = kLocal;
  Space space = Space::input;
  std::uint8_t joins = 0;
  bool partial = false;
  std::uint8_t element_bytes = 1;
  std::size_t offset = 0;  // local: bytes from the space's base
};

struct PlanStep {
  StepKind kind = StepKind::reduce;
  bool finish = false;
  bool partial = false;  // of region: scratch
  std::uint8_t element_bytes = 1;
  bool fused = false;  // send: the reduce before it may already have written to the peer
  // reduce, receive: what it writes outgrows the cache, and no later step reads it but the sends that a reduce pushes
  // to.
  bool past_cache = false;
  bool sends_source = false;  // reduce: a copy whose pushes are sends of its source, not of what it makes
  Space space = Space::input;
  std::int32_t peer = kLocal;
  std::uint32_t message =
      0;  // wait_*: the count to reach; receive: which of the peer's messages of this operation, from 0
  std::uint32_t first_source = 0, source_count = 0;
  std::uint32_t pushes = 0;     // reduce: how many of the steps right behind it send what it makes, or copies
  std::uint32_t reduction = 0;  // reduce: index in Plan::reductions
  // reduce: where what follows does nothing but wait for loans and then finish this result: the step that does. Once
  // the loans are back, both are one pass, by the reduction behind this one. 0: there is none.
  std::uint32_t finisher = 0;
  std::size_t offset = 0;  // bytes from the space's base
  std::size_t count = 0;   // elements
  std::size_t bytes = 0;
};

struct Plan {
  Call call;  // sequence 0
  Tag tag;    // of that
  std::vector<PlanStep> steps;
  std::vector<PlanSource> sources;
  std::vector<Reduction> reductions;
  std::vector<int> peers;  // that the schedule talks to, ascending
  // By index in `peers`, over the whole schedule: messages sent, receives posted, and messages that arrive (received or
  // viewed).
  std::vector<std::uint32_t> sends, receives, arrivals;
  std::size_t scratch_bytes = 0;
  std::size_t input_bias = 0, output_bias = 0;  // bytes by which the caller's buffer starts into the space
  // What the caller's buffers must be: bytes, and output - input when in place.
  std::size_t input_bytes = 0, output_bytes = 0;
  std::ptrdiff_t in_place = 0;
  std::uintptr_t alignment = 1;
  std::size_t most_sources = 0, most_pushes = 0;

  // The call is done in parts [0, parts), one after the other, by the steps above; the last, where it is shorter, by
  // its own. The caller's buffers are rows of whole_row_bytes, as many as ranks for what all-gather puts out and
  // reduce-scatter takes in, else one; each part takes the next row_bytes of every row.
  std::size_t parts = 1;
  std::unique_ptr<Plan> last;
  bool canonical = true;  // combines in the canonical order
  std::size_t row_bytes = 0, whole_row_bytes = 0, input_rows = 1, output_rows = 1;
  const Plan& part(std::size_t number) const { return last != nullptr && number + 1 == parts ? *last : *this; }
};

inline constexpr std::size_t kUsualCacheBytes = 32 << 20;

// How a long call is cut: all ranks alike, but for `packed`.
struct Cut {
  std::size_t part_bytes = 0;  // of the whole message, about; 0: into one part
  bool packed = false;         // a part's rows lie one right behind the other, and not where the caller has them
};

// chunks: of a slice, where the algorithm pipelines. cache_bytes: of the largest cache. Throws Error{invalid_argument}
// where the algorithm does not take the layout.
std::unique_ptr<Plan> make_plan(const Call& call, const AlgorithmEntry& entry, int rank, const Layout& layout,
                                int chunks = 1, std::size_t cache_bytes = kUsualCacheBytes, const Cut& cut = {});

}  // namespace tutti::runtime
