#include "cuda/kernel.cuh"

namespace tutti::internal::cuda {

const void* int8_kernel(const KernelName& name) {
  return with_integer_form<std::int8_t>(name.dtype == DType::int8, name.op, KernelOf{name.shape});
}

}  // namespace tutti::internal::cuda
