// What a reduction is given, on the CPU as on a GPU.
#pragma once

#include <cstddef>
#include <cstdint>

#include "tutti/types.h"

namespace tutti::internal {

struct CustomOperator;

// Elements of the element type, or (partial) of the accumulation type: float32 for 16-bit and 8-bit floats, else the
// same. `joins` gives the tree in postfix: push the source, then `joins` times replace the two topmost by a op b (a
// below). fetches_to_write: this core writes to that memory next, and is the only one that does, so its lines are
// fetched for that, if there are two sources; only a hint.
struct ReduceSource {
  const std::byte* data = nullptr;
  std::uint8_t joins = 0;
  bool partial = false;
  bool fetches_to_write = false;
};
struct ReduceTarget {
  std::byte* data = nullptr;
  bool partial = false;
};

struct ReduceSpec {
  DType dtype = DType::float32;
  Op op = Op::sum;
  // The result is final: avg divides by `leaves`, the value is rounded once to the element type, and every NaN becomes
  // the type's canonical quiet NaN. Without it avg acts as sum, and a single source of the target's own type is copied
  // bit for bit.
  bool finish = false;
  std::uint32_t leaves = 1;
  bool stream = false;  // non-temporal stores: for results that will not be read again from this core's cache
  const CustomOperator* custom = nullptr;  // of Op::custom; must outlive what is made of this
};

}  // namespace tutti::internal
