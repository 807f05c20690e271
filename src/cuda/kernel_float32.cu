#include "cuda/kernel.cuh"

namespace tutti::cuda {

const void* float32_kernel(const KernelName& name) { return with_floating_form<float>(name.op, KernelOf{name.shape}); }

}  // namespace tutti::cuda
