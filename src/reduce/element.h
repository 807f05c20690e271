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

// Lets a CUDA compiler use the same definitions on the device.
#ifdef __CUDACC__
#define TUTTI_HOST_DEVICE __host__ __device__
#else
#define TUTTI_HOST_DEVICE
#endif

namespace tutti {

template <class T>
concept HalfFloat = std::same_as<T, float16> || std::same_as<T, bfloat16>;

// What elements of type T are combined in, and what partial results travel in.
template <class T>
using AccumulationOf = std::conditional_t<HalfFloat<T>, float, T>;

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

template <std::integral A>
TUTTI_HOST_DEVICE constexpr A canonical(A value) {
  return value;
}
template <std::floating_point A>
TUTTI_HOST_DEVICE constexpr A canonical(A value) {
  return value != value ? std::bit_cast<A>(kCanonicalNan<A>) : value;
}

// Element to accumulation type: exact.
template <class T>
TUTTI_HOST_DEVICE constexpr T widen(T value) {
  return value;
}
TUTTI_HOST_DEVICE constexpr float widen(bfloat16 value) {
  return std::bit_cast<float>(std::uint32_t{value.bits} << 16);
}
TUTTI_HOST_DEVICE constexpr float widen(float16 value) {
  const std::uint32_t sign = (value.bits & 0x8000u) << 16;
  std::uint32_t exponent = (value.bits >> 10) & 0x1fu;
  std::uint32_t fraction = value.bits & 0x3ffu;
  if (exponent == 0x1f) return std::bit_cast<float>(sign | 0x7f800000u | fraction << 13);
  if (exponent == 0) {
    if (fraction == 0) return std::bit_cast<float>(sign);
    // A denormal has a normal float32: move its leading one to the implicit place.
    const auto shift = static_cast<std::uint32_t>(std::countl_zero(fraction)) - 21;
    fraction = (fraction << shift) & 0x3ffu;
    exponent = 1 - shift;  // may wrap below zero; the bias added next brings it back
  }
  return std::bit_cast<float>(sign | (exponent + 112) << 23 | fraction << 13);
}

// value / 2^shift, rounded to nearest, ties to even. Requires 0 < shift < 32 and value < 2^31.
TUTTI_HOST_DEVICE constexpr std::uint32_t shift_right_to_nearest(std::uint32_t value, std::uint32_t shift) {
  const std::uint32_t below_half = (1u << (shift - 1)) - 1;
  return (value + below_half + ((value >> shift) & 1u)) >> shift;
}

// Accumulation to element type: rounded once, to nearest even; every NaN becomes the canonical one.
template <class T>
requires(!HalfFloat<T>) TUTTI_HOST_DEVICE constexpr T narrow(T value) { return canonical(value); }
template <std::same_as<bfloat16> T>
TUTTI_HOST_DEVICE constexpr bfloat16 narrow(float value) {
  if (value != value) return {kCanonicalNan<bfloat16>};
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t magnitude = shift_right_to_nearest(bits & 0x7fffffffu, 16);  // a carry runs into infinity
  return {static_cast<std::uint16_t>(magnitude | (bits >> 16 & 0x8000u))};
}
template <std::same_as<float16> T>
TUTTI_HOST_DEVICE constexpr float16 narrow(float value) {
  if (value != value) return {kCanonicalNan<float16>};
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t exponent = bits >> 23 & 0xffu;  // biased by 127; float16's bias is 15
  std::uint32_t magnitude = 0;
  if (exponent >= 143) {
    magnitude = 0x7c00;  // 2^16 and beyond
  } else if (exponent >= 113) {
    magnitude = shift_right_to_nearest((bits & 0x7fffffffu) - (112u << 23), 13);  // a carry runs into infinity
  } else if (exponent >= 102) {
    magnitude = shift_right_to_nearest((bits & 0x7fffffu) | 0x800000u, 126 - exponent);  // in units of 2^-24
  }
  return {static_cast<std::uint16_t>(magnitude | (bits >> 16 & 0x8000u))};
}

// a op b; a stands left of b in the tree. avg combines as sum.
template <Op op, std::integral A>
TUTTI_HOST_DEVICE constexpr A combine(A a, A b) {
  using U = std::make_unsigned_t<A>;
  if constexpr (op == Op::min) return b < a ? b : a;
  if constexpr (op == Op::max) return b > a ? b : a;
  if constexpr (op == Op::prod) return static_cast<A>(static_cast<U>(static_cast<U>(a) * static_cast<U>(b)));
  return static_cast<A>(static_cast<U>(static_cast<U>(a) + static_cast<U>(b)));
}
template <Op op, std::floating_point A>
TUTTI_HOST_DEVICE constexpr A combine(A a, A b) {
  if constexpr (op == Op::min || op == Op::max) {
    if (a != a) return a;
    if (b != b) return b;
    if (a == b) {  // the same bits, or zeros of either sign
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

}  // namespace tutti
