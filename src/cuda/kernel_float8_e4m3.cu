#include "cuda/kernel.cuh"

namespace tutti::internal::cuda {

const void* float8_e4m3_kernel(const KernelName& name) {
  const KernelOf kernel{name.shape};
  return name.mixed ? with_floating_form<float8_e4m3, true>(name.op, kernel)
                    : with_floating_form<float8_e4m3>(name.op, kernel);
}

}  // namespace tutti::internal::cuda
