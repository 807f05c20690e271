// The same reduction, one element at a time in plain C++: what reduce() is checked against.
#pragma once

#include "reduce/reduce.h"

namespace tutti::internal {

// As reduce(), bit for bit; spec.stream has no effect.
void reduce_reference(const ReduceSpec& spec, std::span<const ReduceSource> sources,
                      std::span<const ReduceTarget> targets, std::size_t count);

}  // namespace tutti::internal
