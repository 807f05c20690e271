#include "cuda/kernel.cuh"

namespace tutti::internal::cuda {

const void* float32_kernel(const KernelName& name) { return with_floating_form<float>(name.op, KernelOf{name.shape}); }

}  // namespace tutti::internal::cuda
