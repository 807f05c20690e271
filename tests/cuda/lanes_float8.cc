#include "cuda/lanes.h"

namespace tutti::internal::cuda_test {
namespace {

template <class T>
void run(const Launch& launch) {
  launch.name.mixed ? cuda::with_floating_form<T, true>(launch.name.op, launch)
                    : cuda::with_floating_form<T>(launch.name.op, launch);
}

}  // namespace

void run_float8s(const Launch& launch) {
  launch.name.dtype == DType::float8_e4m3 ? run<float8_e4m3>(launch) : run<float8_e5m2>(launch);
}

}  // namespace tutti::internal::cuda_test
