// The vector kernels behind reduce(): one function a family of types, compiled once per instruction set, the best one
// that this processor has being chosen at the first call.
#pragma once

#include "reduce/scalar.h"

namespace tutti {

// dtype must be of the family; avg runs as sum, task.leaves saying whether to divide (integers: it must be 0).
void run_float_kernel(DType dtype, Op op, const Task& task);  // float32, float64
void run_half_kernel(DType dtype, Op op, const Task& task);   // float16, bfloat16
void run_integer_kernel(DType dtype, Op op, const Task& task);

}  // namespace tutti
