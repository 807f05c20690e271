#include "reduce/targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "reduce/kernel_integer.cc"
#include <hwy/foreach_target.h>

#include "reduce/kernel-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tutti {
namespace HWY_NAMESPACE {

// Sums and products of signed integers are those of unsigned ones.
template <class T>
void run_integer_op(Op op, const Task& task) {
  switch (op) {
    case Op::sum:
    case Op::avg: return run_port<PlainPort, BitsOf<T>, Op::sum>(task);
    case Op::prod: return run_port<PlainPort, BitsOf<T>, Op::prod>(task);
    case Op::min: return run_port<PlainPort, T, Op::min>(task);
    case Op::max: return run_port<PlainPort, T, Op::max>(task);
  }
}

void run_integer(DType dtype, Op op, const Task& task) {
  switch (dtype) {
    case DType::int8: return run_integer_op<std::int8_t>(op, task);
    case DType::uint8: return run_integer_op<std::uint8_t>(op, task);
    case DType::int32: return run_integer_op<std::int32_t>(op, task);
    case DType::uint32: return run_integer_op<std::uint32_t>(op, task);
    case DType::int64: return run_integer_op<std::int64_t>(op, task);
    default: return run_integer_op<std::uint64_t>(op, task);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace tutti
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tutti {
HWY_EXPORT(run_integer);
void run_integer_kernel(DType dtype, Op op, const Task& task) { HWY_DYNAMIC_DISPATCH(run_integer)(dtype, op, task); }
}  // namespace tutti
#endif
