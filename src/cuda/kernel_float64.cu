#include "cuda/kernel.cuh"

namespace tutti::internal::cuda {

const void* float64_kernel(const KernelName& name) { return with_floating_form<double>(name.op, KernelOf{name.shape}); }

}  // namespace tutti::internal::cuda
