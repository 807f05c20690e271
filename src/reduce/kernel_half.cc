#include "memory/targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "reduce/kernel_half.cc"
#include <hwy/foreach_target.h>

#include "reduce/kernel-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tutti {
namespace HWY_NAMESPACE {

template <class T, bool kWhole>
struct HalfPort;

#if HWY_TARGET != HWY_SCALAR && HWY_TARGET != HWY_EMU128

// The processor's own conversions are exact one way and round to nearest even the other, denormals included; a NaN is
// the canonical one before it gets here.
template <bool kWhole>
struct HalfPort<float16, kWhole> {
  using T = float16;
  using D = TagOf<float, kWhole>;
  using D16 = hn::Rebind<hwy::float16_t, D>;
  using Cell = CellOf<D, 1>;
  static constexpr std::size_t kElements = hn::MaxLanes(D());
  static constexpr int kCells = kWhole ? 4 : 1;

  template <bool kPartial>
  static HWY_INLINE Cell load(const std::byte* from, std::size_t i) {
    if constexpr (kPartial) return {{hn::LoadU(D(), reinterpret_cast<const float*>(from) + i)}};
    return {{hn::PromoteTo(D(), hn::LoadU(D16(), reinterpret_cast<const hwy::float16_t*>(from) + i))}};
  }
  template <bool kPartial, bool kStream>
  static HWY_INLINE void store(const Cell& cell, std::byte* to, std::size_t i) {
    if constexpr (kPartial) {
      PlainPort<float, kWhole>::template store<false, kStream>({{cell.v[0]}}, to, i);
    } else {
      const auto halves = hn::DemoteTo(D16(), cell.v[0]);
      auto* const at = reinterpret_cast<hwy::float16_t*>(to) + i;
      if constexpr (kStream) {
        hn::Stream(halves, D16(), at);
      } else {
        hn::StoreU(halves, D16(), at);
      }
    }
  }
};

// A bfloat16 is the upper half of a float32. So of each 32 bits the even element becomes a lane of one vector by a
// shift, the odd element a lane of another by a mask, and no shuffle is needed.
template <bool kWhole>
struct HalfPort<bfloat16, kWhole> {
  using T = bfloat16;
  using D = TagOf<float, kWhole>;
  using D32 = hn::RebindToUnsigned<D>;
  using D16 = hn::Repartition<std::uint16_t, D>;
  using Cell = CellOf<D, 2>;
  static constexpr std::size_t kElements = 2 * hn::MaxLanes(D());
  static constexpr int kCells = kWhole ? 2 : 1;

  template <bool kPartial>
  static HWY_INLINE Cell load(const std::byte* from, std::size_t i) {
    Cell cell;
    if constexpr (kPartial) {
      hn::LoadInterleaved2(D(), reinterpret_cast<const float*>(from) + i, cell.v[0], cell.v[1]);
    } else {
      const auto pairs = hn::BitCast(D32(), hn::LoadU(D16(), reinterpret_cast<const std::uint16_t*>(from) + i));
      cell.v[0] = hn::BitCast(D(), hn::ShiftLeft<16>(pairs));
      cell.v[1] = hn::BitCast(D(), hn::And(pairs, hn::Set(D32(), 0xffff0000)));
    }
    return cell;
  }
  template <bool kPartial, bool kStream>
  static HWY_INLINE void store(const Cell& cell, std::byte* to, std::size_t i) {
    if constexpr (kPartial) {
      hn::StoreInterleaved2(cell.v[0], cell.v[1], D(), reinterpret_cast<float*>(to) + i);
    } else {
      const auto pairs = round(hn::BitCast(D32(), cell.v[0]), hn::BitCast(D32(), cell.v[1]));
      auto* const at = reinterpret_cast<std::uint16_t*>(to) + i;
      if constexpr (kStream) {
        hn::Stream(pairs, D16(), at);
      } else {
        hn::StoreU(pairs, D16(), at);
      }
    }
  }

 private:
  // Upper halves of both, rounded to nearest even: plus one where the lower half and the rule for ties carry into bit
  // 16, that is where lower + 0x7fff + (upper & 1) >= 2^16. The average instruction keeps the sum's bit 16, as its
  // bit 15.
  static HWY_INLINE hn::Vec<D16> round(hn::Vec<D32> even, hn::Vec<D32> odd) {
    const D16 d;
    const auto upper = hn::OddEven(hn::BitCast(d, odd), hn::BitCast(d, hn::ShiftRight<16>(even)));
    const auto lower = hn::OddEven(hn::BitCast(d, hn::ShiftLeft<16>(odd)), hn::BitCast(d, even));
    const auto ties = hn::OrAnd(hn::Set(d, 0x7ffe), upper, hn::Set(d, 1));
    return hn::Add(upper, hn::ShiftRight<15>(hn::AverageRound(lower, ties)));
  }
};

#endif

Kernel half_kernel_here(DType dtype, Op op) {
  return dtype == DType::float16 ? kernel_of<HalfPort, float16>(op) : kernel_of<HalfPort, bfloat16>(op);
}

}  // namespace HWY_NAMESPACE
}  // namespace tutti
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tutti {
HWY_EXPORT(half_kernel_here);
Kernel half_kernel(DType dtype, Op op) { return HWY_DYNAMIC_DISPATCH(half_kernel_here)(dtype, op); }
}  // namespace tutti
#endif
