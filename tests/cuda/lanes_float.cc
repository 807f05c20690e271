#include "cuda/lanes.h"

namespace tutti::internal::cuda_test {

void run_floats(const Launch& launch) {
  launch.name.dtype == DType::float32 ? cuda::with_floating_form<float>(launch.name.op, launch)
                                      : cuda::with_floating_form<double>(launch.name.op, launch);
}

}  // namespace tutti::internal::cuda_test
