#include "cuda/kernel.cuh"

namespace tutti::internal::cuda {

const void* bfloat16_kernel(const KernelName& name) {
  const KernelOf kernel{name.shape};
  return name.mixed ? with_floating_form<bfloat16, true>(name.op, kernel)
                    : with_floating_form<bfloat16>(name.op, kernel);
}

}  // namespace tutti::internal::cuda
