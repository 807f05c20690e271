// Which bytes the regions of a schedule are in the plans of all ranks: each its own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "executor/plan.h"
#include "schedule/schedule.h"
#include "types/collective.h"

namespace tutti::internal {

// Of one part of a call. Throws Refutation.
class MemoryCheck {
 public:
  // If the message has several rows, slices are these.
  MemoryCheck(DType dtype, const Distribution& holds);

  // What follows is about this rank's plan, where each row of its buffers has these bytes.
  struct Bytes {
    std::size_t begin = 0, end = 0;
  };
  struct Buffers {
    std::vector<Bytes> input, output;  // by row of the buffer
  };
  void enter(const Plan& plan, int rank, Buffers buffers);

  // A step of the plan uses `bytes` at `place` where the schedule has `region`.
  void see(const Region& region, const Place& place, std::size_t bytes);
  // The elements of a message that comes for `region`.
  void see_length(const Region& region, std::size_t count);

  void leave() const;          // the plan's regions in scratch do not overlap
  void check_whole_message();  // chunks do not overlap, and are all of it

 private:
  using Chunk = std::pair<std::uint32_t, std::uint16_t>;  // of a slice, or of a row of scratch
  void see_in_buffer(const Region& region, std::size_t offset, std::size_t bytes);

  const std::size_t element_, partial_;  // bytes
  const Distribution holds_;
  const Plan* plan_ = nullptr;
  int rank_ = 0;
  Buffers buffers_;                      // of the plan
  std::map<int, std::size_t> lengths_;   // bytes, by row of the message
  std::map<Chunk, Bytes> message_;       // by slice and chunk: where in the slice's row
  std::map<Chunk, std::size_t> counts_;  // elements, likewise
  std::map<Chunk, Bytes> scratch_;       // of the plan, by row and chunk
};

}  // namespace tutti::internal
