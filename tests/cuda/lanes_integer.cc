#include "cuda/lanes.h"

namespace tutti::internal::cuda_test {

void run_integers(const Launch& launch) {
  const DType dtype = launch.name.dtype;
  if (dtype == DType::boolean) return cuda::with_bits_form<boolean>(launch.name.op, launch);
  if (combines_bits(launch.name.op)) return cuda::with_bits_form<std::uint8_t>(launch.name.op, launch);
  switch (size_of(dtype)) {
    case 1: return cuda::with_integer_form<std::int8_t>(dtype == DType::int8, launch.name.op, launch);
    case 4: return cuda::with_integer_form<std::int32_t>(dtype == DType::int32, launch.name.op, launch);
    default: return cuda::with_integer_form<std::int64_t>(dtype == DType::int64, launch.name.op, launch);
  }
}

}  // namespace tutti::internal::cuda_test
