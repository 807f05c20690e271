// Element-wise reduction on the CPU: n sources into m targets in one pass, along a given tree.
#pragma once

#include <cstddef>
#include <span>

#include "reduce/float_environment.h"
#include "reduce/operands.h"

namespace tutti::internal {

// targets[j][0, count) = the combination of sources[i][0, count), for all j; any alignment of the element's own size.
// A target may be the same memory as a source of the same element size; otherwise nothing may overlap.
// Rounding is to nearest even, without contraction and without flushing denormals, whatever the caller's floating-point
// environment: see FloatEnvironment, which the caller holds around calls.
void reduce(const ReduceSpec& spec, std::span<const ReduceSource> sources, std::span<const ReduceTarget> targets,
            std::size_t count);

}  // namespace tutti::internal
