// What premul_sum does before it sums up.
#pragma once

#include <cstddef>

#include "tutti/operator.h"

namespace tutti::internal {

// Whether elements of the type can be multiplied by the scalar: it is of the type, or of the accumulation type.
bool can_scale(DType dtype, const Scalar& scalar);

// to[0, count) = from[0, count), each multiplied by the scalar in the accumulation type, then rounded once to the
// element type. `to` may be `from`; otherwise they do not overlap. Requires can_scale(), and a FloatEnvironment.
void scale(DType dtype, const Scalar& scalar, const std::byte* from, std::byte* to, std::size_t count);

}  // namespace tutti::internal
