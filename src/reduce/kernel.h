// The vector kernels behind reduce(): compiled once per instruction set. Asked for a
// kernel, each family of types gives the one of the best set that this processor has.
#pragma once

#include "reduce/scalar.h"

namespace tutti::internal {

using Kernel = void (*)(const Task& task);

// dtype must be of the family; avg gives the kernel of sum, task.leaves saying whether to divide (integers: it must be
// 0).
Kernel float_kernel(DType dtype, Op op);  // float32, float64
Kernel half_kernel(DType dtype, Op op);   // float16, bfloat16
Kernel float8_kernel(DType dtype, Op op);
Kernel integer_kernel(DType dtype, Op op);
// band, bor, bxor: of bytes, which are elements of any integer type; of booleans, whose bytes become 0 or 1.
Kernel byte_kernel(Op op);
Kernel boolean_kernel(Op op);

}  // namespace tutti::internal
