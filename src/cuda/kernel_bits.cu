#include "cuda/kernel.cuh"

namespace tutti::internal::cuda {

const void* bits_kernel(const KernelName& name) {
  const KernelOf kernel{name.shape};
  return name.dtype == DType::boolean ? with_bits_form<boolean>(name.op, kernel)
                                      : with_bits_form<std::uint8_t>(name.op, kernel);
}

}  // namespace tutti::internal::cuda
