// The compiled kernels by name. A file for each family of types, so that they compile side by side.
#pragma once

#include "cuda/plan.h"

namespace tutti::internal::cuda {

inline constexpr unsigned kMaxThreads = 256;  // of a block

// What cudaLaunchKernel() takes; name.dtype must be of the family. Shape::tree has one parameter, a ManyTask, the
// others a FewTask.
const void* float32_kernel(const KernelName& name);
const void* float64_kernel(const KernelName& name);
const void* float16_kernel(const KernelName& name);
const void* bfloat16_kernel(const KernelName& name);
const void* float8_e4m3_kernel(const KernelName& name);
const void* float8_e5m2_kernel(const KernelName& name);
const void* int8_kernel(const KernelName& name);  // and uint8; so the next two
const void* int32_kernel(const KernelName& name);
const void* int64_kernel(const KernelName& name);
const void* bits_kernel(const KernelName& name);  // band, bor, bxor: of uint8, which stands for any bytes, and boolean

}  // namespace tutti::internal::cuda
