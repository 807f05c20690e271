#include "cuda/lanes.h"

namespace tutti::internal::cuda_test {
namespace {

template <class T>
void run(const Launch& launch) {
  launch.name.mixed ? cuda::with_floating_form<T, true>(launch.name.op, launch)
                    : cuda::with_floating_form<T>(launch.name.op, launch);
}

}  // namespace

void run_halves(const Launch& launch) {
  launch.name.dtype == DType::float16 ? run<float16>(launch) : run<bfloat16>(launch);
}

}  // namespace tutti::internal::cuda_test
