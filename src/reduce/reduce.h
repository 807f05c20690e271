// Element-wise reduction on the CPU: n sources into m targets in one pass, along a given tree.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "reduce/float_environment.h"
#include "tutti/types.h"

namespace tutti {

// Elements of the element type, or (partial) of the accumulation type: float32 for 16-bit floats, else the same.
// `joins` gives the tree in postfix: push the source, then `joins` times replace the two topmost by a op b (a below).
struct ReduceSource {
  const std::byte* data = nullptr;
  std::uint8_t joins = 0;
  bool partial = false;
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
};

// targets[j][0, count) = the combination of sources[i][0, count), for all j; any alignment of the element's own size.
// A target may be the same memory as a source of the same element size; otherwise nothing may overlap.
// Rounding is to nearest even, without contraction and without flushing denormals, whatever the caller's floating-point
// environment: see FloatEnvironment, which the caller holds around calls.
void reduce(const ReduceSpec& spec, std::span<const ReduceSource> sources, std::span<const ReduceTarget> targets,
            std::size_t count);

}  // namespace tutti
