#include "memory/targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "reduce/kernel_float8.cc"
#include <hwy/foreach_target.h>

#include "reduce/kernel-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tutti::internal {
namespace HWY_NAMESPACE {

template <class T, bool kWhole>
struct Float8Port;

#if HWY_TARGET != HWY_SCALAR && HWY_TARGET != HWY_EMU128

// The even bytes of a vector become float16s by a shift, the odd ones by a mask, and the processor converts these. So
// v[0] and v[1] have the even elements, v[2] and v[3] the odd ones.
template <class T_, bool kWhole>
struct Float8Port {
  using T = T_;
  using D = TagOf<float, kWhole>;
  using Cell = CellOf<D, 4>;
  static constexpr std::size_t kElements = 4 * hn::MaxLanes(D());
  static constexpr int kCells = 1;

  template <bool kPartial>
  static HWY_INLINE Cell load(const std::byte* from, std::size_t i) {
    Cell cell;
    if constexpr (kPartial) {
      const float* const at = reinterpret_cast<const float*>(from) + i;
      hn::LoadInterleaved2(D(), at, cell.v[0], cell.v[2]);
      hn::LoadInterleaved2(D(), at + kElements / 2, cell.v[1], cell.v[3]);
    } else {
      const auto bytes = hn::BitCast(D16(), hn::LoadU(D8(), reinterpret_cast<const std::uint8_t*>(from) + i));
      widen_half(hn::ShiftLeft<8>(bytes), cell.v[0], cell.v[1]);
      widen_half(hn::And(bytes, hn::Set(D16(), 0xff00)), cell.v[2], cell.v[3]);
    }
    return cell;
  }

  // Whether all are numbers that are not too large. As integers: a NaN is larger than all numbers.
  static HWY_INLINE bool is_plain(const Cell* cells) {
    const auto bits = [&](int k) HWY_ATTR { return hn::BitCast(Signed(), hn::Abs(cells[0].v[k])); };
    const auto most = hn::Max(hn::Max(bits(0), bits(1)), hn::Max(bits(2), bits(3)));
    return hn::AllTrue(Signed(), hn::Lt(most, hn::Set(Signed(), kTooLarge)));
  }
  using Packed = CellOf<hn::Repartition<std::uint8_t, D>, 1>;
  static HWY_INLINE Packed pack(const Cell& cell, bool plain) {
    return HWY_LIKELY(plain) ? pack_cell<true>(cell) : pack_cell<false>(cell);
  }
  template <bool kStream>
  static HWY_INLINE void store(const Packed& bytes, std::byte* to, std::size_t i) {
    store_vector<kStream>(D8(), bytes.v[0], reinterpret_cast<std::uint8_t*>(to) + i);
  }
  template <bool kStream>
  static HWY_INLINE void store_partial(const Cell& cell, std::byte* to, std::size_t i) {
    float* const at = reinterpret_cast<float*>(to) + i;
    hn::StoreInterleaved2(cell.v[0], cell.v[2], D(), at);
    hn::StoreInterleaved2(cell.v[1], cell.v[3], D(), at + kElements / 2);
  }

 private:
  using Form = Float8Form<T>;
  using D8 = hn::Repartition<std::uint8_t, D>;
  using D16 = hn::Repartition<std::uint16_t, D>;
  using Half16 = hn::Half<D16>;
  using Signed = hn::RebindToSigned<D>;
  // The first that does not round to a number: between the largest and Form::kTooLarge, ties go to the latter, but for
  // E4M3, whose largest is even. What is larger than the largest is seldom, so both begin right behind it.
  static constexpr std::int32_t kTooLarge = Form::kIsE4m3 ? 0x43e00001 : 0x47600001;

  // Bytes in the upper halves of 16 bits.
  static HWY_INLINE void widen_half(hn::Vec<D16> bytes, hn::Vec<D>& low, hn::Vec<D>& high) {
    const D16 d;
    if constexpr (Form::kIsE4m3) {  // has float16's exponent, less a bit, and 2^-8 of its value
      const auto magnitude = hn::And(hn::ShiftRight<1>(bytes), hn::Set(d, 0x3f80));
      const auto infinite = hn::IfThenElseZero(hn::Eq(magnitude, hn::Set(d, 0x3f80)), hn::Set(d, 0x7c00));
      bytes = hn::Or(hn::Or(magnitude, infinite), hn::And(bytes, hn::Set(d, 0x8000)));
    }
    const hn::Rebind<hwy::float16_t, D> d_half;
    low = hn::PromoteTo(D(), hn::BitCast(d_half, hn::LowerHalf(Half16(), bytes)));
    high = hn::PromoteTo(D(), hn::BitCast(d_half, hn::UpperHalf(Half16(), bytes)));
    if constexpr (Form::kIsE4m3) {
      low = hn::Mul(low, hn::Set(D(), 256.0f));
      high = hn::Mul(high, hn::Set(D(), 256.0f));
    }
  }

  // As narrow() in element.h: the byte of each lane.
  template <bool kPlain>
  static HWY_INLINE hn::Vec<Signed> narrow_lanes(hn::Vec<D> value) {
    const Signed d;
    const auto bits = hn::BitCast(d, value);
    const auto positive = hn::Abs(value);
    auto bounded = hn::BitCast(d, positive);
    if constexpr (!kPlain) bounded = hn::Min(bounded, hn::Set(d, static_cast<std::int32_t>(Form::kTooLarge)));
    const auto is_odd = hn::And(hn::ShiftRight<Form::kDropped>(bounded), hn::Set(d, 1));
    constexpr std::int32_t kRebias = (1 << (Form::kDropped - 1)) - 1 - static_cast<std::int32_t>(Form::kBias << 23);
    const auto normal = hn::ShiftRight<Form::kDropped>(hn::Add(hn::Add(bounded, is_odd), hn::Set(d, kRebias)));
    const auto units = hn::Set(D(), Form::kUnits);
    const auto small = hn::Sub(hn::BitCast(d, hn::Add(positive, units)), hn::BitCast(d, units));
    const auto is_small = hn::Lt(bounded, hn::Set(d, static_cast<std::int32_t>(Form::kSmallestNormal)));
    const auto magnitude = hn::IfThenElse(is_small, small, normal);
    const auto sign = hn::And(hn::ShiftRight<24>(bits), hn::Set(d, 0x80));
    if constexpr (kPlain) return hn::Or(magnitude, sign);
    const auto nan = hn::Set(d, kCanonicalNan<T>);
    const auto is_nan = hn::Or(hn::Eq(magnitude, nan), hn::RebindMask(d, hn::IsNaN(value)));
    return hn::IfThenElse(is_nan, nan, hn::Or(magnitude, sign));
  }

  template <bool kPlain>
  static HWY_INLINE Packed pack_cell(const Cell& cell) {
    const auto pairs = [&](int k) HWY_ATTR {
      return hn::DemoteTo(
          Half16(), hn::Or(narrow_lanes<kPlain>(cell.v[k]), hn::ShiftLeft<8>(narrow_lanes<kPlain>(cell.v[k + 2]))));
    };
    return {{hn::BitCast(D8(), hn::Combine(D16(), pairs(1), pairs(0)))}};
  }
};

#endif

Kernel float8_kernel_here(DType dtype, Op op) {
  return dtype == DType::float8_e4m3 ? kernel_of<Float8Port, float8_e4m3>(op) : kernel_of<Float8Port, float8_e5m2>(op);
}

}  // namespace HWY_NAMESPACE
}  // namespace tutti::internal
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tutti::internal {
HWY_EXPORT(float8_kernel_here);
Kernel float8_kernel(DType dtype, Op op) { return HWY_DYNAMIC_DISPATCH(float8_kernel_here)(dtype, op); }
}  // namespace tutti::internal
#endif
