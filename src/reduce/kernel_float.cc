#include "reduce/targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "reduce/kernel_float.cc"
#include <hwy/foreach_target.h>

#include "reduce/kernel-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tutti {
namespace HWY_NAMESPACE {

void run_float(DType dtype, Op op, const Task& task) {
  dtype == DType::float32 ? run_op<PlainPort, float>(op, task) : run_op<PlainPort, double>(op, task);
}

}  // namespace HWY_NAMESPACE
}  // namespace tutti
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tutti {
HWY_EXPORT(run_float);
void run_float_kernel(DType dtype, Op op, const Task& task) { HWY_DYNAMIC_DISPATCH(run_float)(dtype, op, task); }
}  // namespace tutti
#endif
