// What a reduction means for one element: conversions, operators and the final step, in plain integer and IEEE
// arithmetic. Everything faster (vectors, GPUs) must give these bits. Requires -ffp-contract=off and the IEEE default
// environment.
#pragma once

#include <bit>
#include <concepts>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "tutti/types.h"

// Lets a CUDA compiler use the same definitions on the device; always inline, as a call would move what a thread holds
// out of its registers.
#ifdef __CUDACC__
#define TUTTI_HOST_DEVICE __host__ __device__ __forceinline__
#else
#define TUTTI_HOST_DEVICE
#endif

namespace tutti::internal {

template <class T>
concept Float8 = std::same_as<T, float8_e4m3> || std::same_as<T, float8_e5m2>;
template <class T>
concept NarrowFloat = std::same_as<T, float16> || std::same_as<T, bfloat16> || Float8<T>;

// A boolean as it lies in memory, where it may be any byte.
struct boolean {
  std::uint8_t bits;
};

// What elements of type T are combined in, and what partial results travel in. (Those of booleans are 0 and 1.)
template <class T>
using AccumulationOf =
    std::conditional_t<NarrowFloat<T>, float, std::conditional_t<std::same_as<T, boolean>, std::uint8_t, T>>;

// The unsigned type of the same size: a float's bits, and the modular arithmetic of an integer.
template <class T>
using BitsOf = std::conditional_t<sizeof(T) == 1, std::uint8_t,
                                  std::conditional_t<sizeof(T) == 2, std::uint16_t,
                                                     std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>>>;

// The one NaN that is ever stored: quiet, positive, no payload.
template <class T>
inline constexpr BitsOf<T> kCanonicalNan = 0;
template <>
inline constexpr std::uint32_t kCanonicalNan<float> = 0x7fc00000;
template <>
inline constexpr std::uint64_t kCanonicalNan<double> = 0x7ff8000000000000;
template <>
inline constexpr std::uint16_t kCanonicalNan<float16> = 0x7e00;
template <>
inline constexpr std::uint16_t kCanonicalNan<bfloat16> = 0x7fc0;
// What PyTorch and CUDA store, too.
template <>
inline constexpr std::uint8_t kCanonicalNan<float8_e4m3> = 0x7f;
template <>
inline constexpr std::uint8_t kCanonicalNan<float8_e5m2> = 0x7f;

// How the numbers of an 8-bit float lie in it, beside those of float32.
template <Float8 T>
struct Float8Form {
  static constexpr bool kIsE4m3 = std::same_as<T, float8_e4m3>;
  static constexpr int kFraction = kIsE4m3 ? 3 : 2;            // bits
  static constexpr std::uint32_t kBias = kIsE4m3 ? 120 : 112;  // that float32's exponent has more
  static constexpr int kDropped = 23 - kFraction;              // bits of float32's fraction
  // In float32's bits: the smallest normal number, and the first that is too large. (Of E4M3 that is 480, whose place
  // the NaN has, of E5M2 2^16, where the infinity is.)
  static constexpr std::uint32_t kSmallestNormal = (kBias + 1) << 23;
  static constexpr std::uint32_t kTooLarge = kIsE4m3 ? 0x43f00000 : 0x47800000;
  // The NaNs of E4M3, the infinity and the NaNs of E5M2, without the sign.
  static constexpr std::uint8_t kFirstSpecial = kIsE4m3 ? 0x7f : 0x7c;
  // Below the normal ones, numbers count in units of 2^-9 and 2^-16, which is what float32 rounds to from here on.
  static constexpr float kUnits = kIsE4m3 ? 0x1p14f : 0x1p7f;
};

template <std::integral A>
TUTTI_HOST_DEVICE constexpr A canonical(A value) {
  return value;
}
template <std::floating_point A>
TUTTI_HOST_DEVICE constexpr A canonical(A value) {
  return value != value ? std::bit_cast<A>(kCanonicalNan<A>) : value;  // NOLINT(misc-redundant-expression): of a NaN
}

// Element to accumulation type: exact.
template <class T>
TUTTI_HOST_DEVICE constexpr T widen(T value) {
  return value;
}
TUTTI_HOST_DEVICE constexpr std::uint8_t widen(boolean value) { return value.bits != 0 ? 1 : 0; }
TUTTI_HOST_DEVICE constexpr float widen(bfloat16 value) {
  return std::bit_cast<float>(std::uint32_t{value.bits} << 16);
}
TUTTI_HOST_DEVICE constexpr float widen(float16 value) {
  // Where float32 has its sign, exponent and fraction, these bits are the value times 2^-112; denormals too.
  const auto top = static_cast<std::int32_t>(std::uint32_t{value.bits} << 16);
  const std::uint32_t placed = static_cast<std::uint32_t>(top >> 3) & 0x8fffe000u;
  const auto bits = std::bit_cast<std::uint32_t>(std::bit_cast<float>(placed) * 0x1p112f);
  const bool finite = (~placed & 0x0f800000u) != 0;
  return std::bit_cast<float>(finite ? bits : bits | 0x7f800000u);
}
template <Float8 T>
TUTTI_HOST_DEVICE constexpr float widen(T value) {
  using Form = Float8Form<T>;
  const std::uint32_t magnitude = value.bits & 0x7fu, sign = (value.bits & 0x80u) << 24;
  // Where float32 has its exponent and fraction, these bits are the value times 2^-kBias; denormals too.
  const float scaled =
      std::bit_cast<float>(magnitude << Form::kDropped) * std::bit_cast<float>((Form::kBias + 127) << 23);
  const std::uint32_t special = magnitude >= Form::kFirstSpecial ? 0x7f800000u : 0;
  // The fraction of E5M2 tells its NaNs from the infinity; a NaN of E4M3 has one too.
  return std::bit_cast<float>(sign | special | std::bit_cast<std::uint32_t>(scaled));
}

// Accumulation to element type: rounded once, to nearest even; every NaN becomes the canonical one.
template <class T>
requires(!NarrowFloat<T>) TUTTI_HOST_DEVICE constexpr T narrow(T value) { return canonical(value); }
template <std::same_as<boolean> T>
TUTTI_HOST_DEVICE constexpr boolean narrow(std::uint8_t value) {
  return {value};
}
template <std::same_as<bfloat16> T>
TUTTI_HOST_DEVICE constexpr bfloat16 narrow(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  // Half of what is dropped, or a bit less where the result would stay even; a carry runs into infinity.
  const std::uint32_t rounded = bits + 0x7fffu + (bits >> 16 & 1u);
  return {value != value ? kCanonicalNan<bfloat16> : static_cast<std::uint16_t>(rounded >> 16)};
}
template <std::same_as<float16> T>
TUTTI_HOST_DEVICE constexpr float16 narrow(float value) {
  constexpr std::uint32_t kTooLarge = 143u << 23, kSmallestNormal = 113u << 23;  // 2^16, 2^-14
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t positive = bits & 0x7fffffffu, bounded = positive < kTooLarge ? positive : kTooLarge;
  // The exponent's bias changes from 127 to 15; a carry runs into infinity. Below the normal ones, float16 counts in
  // units of 2^-24, which is what float32 rounds to from 1/2 on.
  const std::uint32_t normal = (bounded - (112u << 23) + 0xfff + (bounded >> 13 & 1u)) >> 13;
  const std::uint32_t small =
      std::bit_cast<std::uint32_t>(std::bit_cast<float>(positive) + 0.5f) - std::bit_cast<std::uint32_t>(0.5f);
  const std::uint32_t magnitude = bounded < kSmallestNormal ? small : normal;
  return {value != value ? kCanonicalNan<float16> : static_cast<std::uint16_t>(magnitude | (bits >> 16 & 0x8000u))};
}
template <Float8 T>
TUTTI_HOST_DEVICE constexpr T narrow(float value) {
  using Form = Float8Form<T>;
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t positive = bits & 0x7fffffffu, bounded = positive < Form::kTooLarge ? positive : Form::kTooLarge;
  // Half of what is dropped, or a bit less where the result would stay even; a carry runs into what is too large.
  const std::uint32_t half = (1u << (Form::kDropped - 1)) - 1;
  const std::uint32_t normal =
      (bounded - (Form::kBias << 23) + half + (bounded >> Form::kDropped & 1u)) >> Form::kDropped;
  const std::uint32_t small = std::bit_cast<std::uint32_t>(std::bit_cast<float>(positive) + Form::kUnits) -
                              std::bit_cast<std::uint32_t>(Form::kUnits);
  const std::uint32_t magnitude = bounded < Form::kSmallestNormal ? small : normal;
  const bool is_nan = value != value || magnitude == kCanonicalNan<T>;  // of E4M3: what is too large
  return {is_nan ? kCanonicalNan<T> : static_cast<std::uint8_t>(magnitude | (bits >> 24 & 0x80u))};
}

// The operator on bits that does what `op` does with booleans.
constexpr Op boolean_op(Op op) {
  switch (op) {
    case Op::sum:
    case Op::max: return Op::bor;
    case Op::prod:
    case Op::min: return Op::band;
    default: return op;
  }
}

// a op b; a stands left of b in the tree. avg combines as sum.
template <Op op, std::integral A>
TUTTI_HOST_DEVICE constexpr A combine(A a, A b) {
  using U = std::make_unsigned_t<A>;
  if constexpr (op == Op::min) return b < a ? b : a;
  if constexpr (op == Op::max) return b > a ? b : a;
  if constexpr (op == Op::band) return static_cast<A>(a & b);
  if constexpr (op == Op::bor) return static_cast<A>(a | b);
  if constexpr (op == Op::bxor) return static_cast<A>(a ^ b);
  if constexpr (op == Op::prod) return static_cast<A>(static_cast<U>(static_cast<U>(a) * static_cast<U>(b)));
  return static_cast<A>(static_cast<U>(static_cast<U>(a) + static_cast<U>(b)));
}
template <Op op, std::floating_point A>
TUTTI_HOST_DEVICE constexpr A combine(A a, A b) {
  if constexpr (op == Op::min || op == Op::max) {
    if (a != a) return a;  // NOLINT(misc-redundant-expression): a NaN
    if (b != b) return b;  // NOLINT(misc-redundant-expression): likewise
    if (a == b) {          // the same bits, or zeros of either sign
      const auto x = std::bit_cast<BitsOf<A>>(a), y = std::bit_cast<BitsOf<A>>(b);
      return std::bit_cast<A>(op == Op::min ? x | y : x & y);
    }
    return (op == Op::min) == (a < b) ? a : b;
  }
  if constexpr (op == Op::prod) return a * b;
  return a + b;
}

// The end of avg: sum / leaves; of integers truncating toward zero. Requires leaves > 0.
template <std::integral A>
TUTTI_HOST_DEVICE constexpr A average(A sum, std::uint32_t leaves) {
  if constexpr (sizeof(A) <= 4) {
    // Exact, and many times faster: a quotient of numbers below 2^32 that is no integer misses the next one by more
    // than 2^-32 of itself, and double precision errs by 2^-53.
    return static_cast<A>(static_cast<double>(sum) / static_cast<double>(leaves));
  } else {
    return static_cast<A>(sum /
                          static_cast<std::conditional_t<std::is_signed_v<A>, std::int64_t, std::uint64_t>>(leaves));
  }
}
template <std::floating_point A>
TUTTI_HOST_DEVICE constexpr A average(A sum, std::uint32_t leaves) {
  return sum / static_cast<A>(leaves);
}

}  // namespace tutti::internal
