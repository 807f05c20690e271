#include "cuda/kernel.cuh"

namespace tutti::internal::cuda {

const void* int64_kernel(const KernelName& name) {
  return with_integer_form<std::int64_t>(name.dtype == DType::int64, name.op, KernelOf{name.shape});
}

}  // namespace tutti::internal::cuda
