// 16-bit floats by their definition, in double precision, which holds all of them exactly: shares nothing with
// element.h.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace tutti::internal::reduce_test {

struct Format {
  int exponent_bits;
  int fraction_bits;
  int bias() const { return (1 << (exponent_bits - 1)) - 1; }
};
inline constexpr Format kFloat16{5, 10}, kBfloat16{8, 7};

inline double value_of(Format format, std::uint32_t bits) {
  const int exponent = static_cast<int>(bits >> format.fraction_bits) & ((1 << format.exponent_bits) - 1);
  const int fraction = static_cast<int>(bits & ((1u << format.fraction_bits) - 1));
  const double sign = bits & 0x8000 ? -1 : 1;
  if (exponent == (1 << format.exponent_bits) - 1) return fraction != 0 ? std::nan("") : sign * INFINITY;
  const int implicit = exponent != 0 ? 1 << format.fraction_bits : 0;
  return sign * std::ldexp(implicit + fraction, std::max(exponent, 1) - format.bias() - format.fraction_bits);
}

// The bits of the nearest value, ties going to the even one, by scaling to integers and rounding in double precision.
inline std::uint32_t bits_of_nearest(Format format, float value) {
  const std::uint32_t sign = std::signbit(value) ? 0x8000 : 0;
  const std::uint32_t infinity = ((1u << format.exponent_bits) - 1) << format.fraction_bits;
  if (std::isnan(value)) return infinity | 1u << (format.fraction_bits - 1);
  if (std::isinf(value)) return sign | infinity;
  const double magnitude = std::fabs(static_cast<double>(value));
  if (magnitude == 0) return sign;
  const int exponent = std::max(std::ilogb(magnitude), 1 - format.bias());
  const auto units = static_cast<std::uint32_t>(std::nearbyint(std::ldexp(magnitude, format.fraction_bits - exponent)));
  // Units of 2^fraction_bits and more carry the implicit one; both it and a carry add up into the exponent field.
  const auto field = static_cast<std::uint32_t>(exponent + format.bias() - 1) << format.fraction_bits;
  return sign | std::min(field + units, infinity);
}

}  // namespace tutti::internal::reduce_test
