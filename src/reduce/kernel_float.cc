#include "memory/targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "reduce/kernel_float.cc"
#include <hwy/foreach_target.h>

#include "reduce/kernel-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tutti::internal {
namespace HWY_NAMESPACE {

Kernel float_kernel_here(DType dtype, Op op) {
  return dtype == DType::float32 ? kernel_of<PlainPort, float>(op) : kernel_of<PlainPort, double>(op);
}

}  // namespace HWY_NAMESPACE
}  // namespace tutti::internal
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tutti::internal {
HWY_EXPORT(float_kernel_here);
Kernel float_kernel(DType dtype, Op op) { return HWY_DYNAMIC_DISPATCH(float_kernel_here)(dtype, op); }
}  // namespace tutti::internal
#endif
