#include "memory/targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "reduce/kernel_integer.cc"
#include <hwy/foreach_target.h>

#include "reduce/kernel-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tutti::internal {
namespace HWY_NAMESPACE {

// Sums and products of signed integers are those of unsigned ones.
template <class T>
Kernel integer_kernel_of(Op op) {
  return op == Op::min || op == Op::max ? kernel_of<PlainPort, T>(op) : kernel_of<PlainPort, BitsOf<T>>(op);
}

Kernel integer_kernel_here(DType dtype, Op op) {
  switch (dtype) {
    case DType::int8: return integer_kernel_of<std::int8_t>(op);
    case DType::uint8: return integer_kernel_of<std::uint8_t>(op);
    case DType::int32: return integer_kernel_of<std::int32_t>(op);
    case DType::uint32: return integer_kernel_of<std::uint32_t>(op);
    case DType::int64: return integer_kernel_of<std::int64_t>(op);
    default: return integer_kernel_of<std::uint64_t>(op);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace tutti::internal
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tutti::internal {
HWY_EXPORT(integer_kernel_here);
Kernel integer_kernel(DType dtype, Op op) { return HWY_DYNAMIC_DISPATCH(integer_kernel_here)(dtype, op); }
}  // namespace tutti::internal
#endif
