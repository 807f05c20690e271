#include "cuda/kernel.cuh"

namespace tutti::internal::cuda {

const void* int32_kernel(const KernelName& name) {
  return with_integer_form<std::int32_t>(name.dtype == DType::int32, name.op, KernelOf{name.shape});
}

}  // namespace tutti::internal::cuda
