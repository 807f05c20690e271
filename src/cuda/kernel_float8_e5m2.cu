#include "cuda/kernel.cuh"

namespace tutti::internal::cuda {

const void* float8_e5m2_kernel(const KernelName& name) {
  const KernelOf kernel{name.shape};
  return name.mixed ? with_floating_form<float8_e5m2, true>(name.op, kernel)
                    : with_floating_form<float8_e5m2>(name.op, kernel);
}

}  // namespace tutti::internal::cuda
