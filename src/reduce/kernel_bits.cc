#include "memory/targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "reduce/kernel_bits.cc"
#include <hwy/foreach_target.h>

#include "reduce/kernel-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tutti::internal {
namespace HWY_NAMESPACE {

template <class T, bool kWhole>
struct BooleanPort;

#if HWY_TARGET != HWY_SCALAR && HWY_TARGET != HWY_EMU128

// Bytes that are 0 or 1 as soon as they are loaded.
template <bool kWhole>
struct BooleanPort<boolean, kWhole> : PlainPort<std::uint8_t, kWhole> {
  using Bytes = PlainPort<std::uint8_t, kWhole>;
  using T = boolean;
  using typename Bytes::Cell;
  using typename Bytes::D;

  template <bool kPartial>
  static HWY_INLINE Cell load(const std::byte* from, std::size_t i) {
    return {{hn::Min(Bytes::template load<kPartial>(from, i).v[0], hn::Set(D(), 1))}};
  }
};

#endif

template <template <class, bool> class PortOf, class T>
Kernel bits_kernel_of(Op op) {
  switch (op) {
    case Op::band: return run_port<PortOf, T, Op::band>;
    case Op::bor: return run_port<PortOf, T, Op::bor>;
    default: return run_port<PortOf, T, Op::bxor>;
  }
}

Kernel byte_kernel_here(Op op) { return bits_kernel_of<PlainPort, std::uint8_t>(op); }
Kernel boolean_kernel_here(Op op) { return bits_kernel_of<BooleanPort, boolean>(op); }

}  // namespace HWY_NAMESPACE
}  // namespace tutti::internal
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tutti::internal {
HWY_EXPORT(byte_kernel_here);
HWY_EXPORT(boolean_kernel_here);
Kernel byte_kernel(Op op) { return HWY_DYNAMIC_DISPATCH(byte_kernel_here)(op); }
Kernel boolean_kernel(Op op) { return HWY_DYNAMIC_DISPATCH(boolean_kernel_here)(op); }
}  // namespace tutti::internal
#endif
