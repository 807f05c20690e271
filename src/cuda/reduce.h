// Element-wise reduction on the GPU: n sources into m targets in one pass, along a given tree, with the bits of the
// CPU's reduce(). Includes nothing of CUDA's, and is there without it: Error{unsupported} then says so.
#pragma once

#include <cstddef>
#include <span>

#include "cuda/plan.h"
#include "cuda/stream.h"
#include "reduce/reduce.h"

namespace tutti::internal::cuda {

// As tutti::internal::reduce(), of memory that the current device can reach. Enqueued on `stream`, which is that
// device's; returns before it is done, with spans that are not needed any more. spec.stream has no effect. Nothing is
// allocated, so it can be captured into a graph. Throws Error{invalid_argument} for what is no tree, no average, or no
// multiple of its element's size; Error{unsupported} beyond the limits above; Error{system} where CUDA refuses. Nothing
// is enqueued then.
void reduce(const ReduceSpec& spec, std::span<const ReduceSource> sources, std::span<const ReduceTarget> targets,
            std::size_t count, Stream stream);

}  // namespace tutti::internal::cuda
