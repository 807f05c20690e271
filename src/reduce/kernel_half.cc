// Of Highway's sets, the one in which nearly all processors with AVX512_BF16 are.
#define HWY_WANT_AVX3_DL
#include "memory/targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "reduce/kernel_half.cc"
#include <hwy/foreach_target.h>

#include "reduce/kernel-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tutti::internal {
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
  static HWY_INLINE bool is_plain(const Cell* cells) { return !any_nan<kCells>(cells); }
  using Packed = CellOf<D16, 1>;
  static HWY_INLINE Packed pack(const Cell& cell, bool) { return {{hn::DemoteTo(D16(), cell.v[0])}}; }
  template <bool kStream>
  static HWY_INLINE void store(const Packed& halves, std::byte* to, std::size_t i) {
    store_vector<kStream>(D16(), halves.v[0], reinterpret_cast<hwy::float16_t*>(to) + i);
  }
  template <bool kStream>
  static HWY_INLINE void store_partial(const Cell& cell, std::byte* to, std::size_t i) {
    store_vector<kStream>(D(), cell.v[0], reinterpret_cast<float*>(to) + i);
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
  static HWY_INLINE bool is_plain(const Cell* cells) { return !any_nan<kCells>(cells); }
  using Packed = CellOf<D16, 1>;
  static HWY_INLINE Packed pack(const Cell& cell, bool) {
    return {{round(hn::BitCast(D32(), cell.v[0]), hn::BitCast(D32(), cell.v[1]))}};
  }
  template <bool kStream>
  static HWY_INLINE void store(const Packed& pairs, std::byte* to, std::size_t i) {
    store_vector<kStream>(D16(), pairs.v[0], reinterpret_cast<std::uint16_t*>(to) + i);
  }
  template <bool kStream>
  static HWY_INLINE void store_partial(const Cell& cell, std::byte* to, std::size_t i) {
    hn::StoreInterleaved2(cell.v[0], cell.v[1], D(), reinterpret_cast<float*>(to) + i);
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

#if HWY_TARGET == HWY_AVX3_DL

// The processor's own rounding to bfloat16 is to nearest even as well, but takes denormals for zero and keeps a NaN's
// payload: rounds with either go the other way.
template <class T, bool kWhole>
struct NativePort : HalfPort<T, kWhole> {
  using Base = HalfPort<T, kWhole>;
  using typename Base::Cell;
  using typename Base::Packed;

  static HWY_INLINE bool is_plain(const Cell* cells) {
    constexpr int kNanOrDenormal = 0xa1;
    __mmask32 special = 0;
    for (int c = 0; c < Base::kCells; ++c)
      special |= _mm512_kunpackw(_mm512_fpclass_ps_mask(cells[c].v[0].raw, kNanOrDenormal),
                                 _mm512_fpclass_ps_mask(cells[c].v[1].raw, kNanOrDenormal));
    return special == 0;
  }
  static HWY_INLINE Packed pack(const Cell& cell, bool plain) {
    if (HWY_UNLIKELY(!plain)) return Base::pack(cell, plain);
    // By name: within functions of this set, the compiler would not inline the intrinsic of a greater one.
    __m512i halves;  // of the even elements, then of the odd
    asm("vcvtne2ps2bf16 %2, %1, %0" : "=v"(halves) : "v"(cell.v[1].raw), "v"(cell.v[0].raw));
    alignas(64) static constexpr std::uint16_t kInterleaved[32] = {0,  16, 1,  17, 2,  18, 3,  19, 4,  20, 5,
                                                                   21, 6,  22, 7,  23, 8,  24, 9,  25, 10, 26,
                                                                   11, 27, 12, 28, 13, 29, 14, 30, 15, 31};
    return {{hn::Vec<typename Base::D16>{_mm512_permutexvar_epi16(_mm512_load_si512(kInterleaved), halves)}}};
  }
};

// Of vectors of 16 bytes there are few.
template <class T>
struct NativePort<T, false> : HalfPort<T, false> {};

#endif

Kernel half_kernel_here(DType dtype, Op op) {
#if HWY_TARGET == HWY_AVX3_DL
  if (dtype == DType::bfloat16 && __builtin_cpu_supports("avx512bf16")) return kernel_of<NativePort, bfloat16>(op);
#endif
  return dtype == DType::float16 ? kernel_of<HalfPort, float16>(op) : kernel_of<HalfPort, bfloat16>(op);
}

}  // namespace HWY_NAMESPACE
}  // namespace tutti::internal
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tutti::internal {
HWY_EXPORT(half_kernel_here);
Kernel half_kernel(DType dtype, Op op) { return HWY_DYNAMIC_DISPATCH(half_kernel_here)(dtype, op); }
}  // namespace tutti::internal
#endif
