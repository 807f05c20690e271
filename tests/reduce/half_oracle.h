// 16-bit and 8-bit floats by their definition, in double precision, which holds all of them exactly: shares nothing
// with element.h.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace tutti::internal::reduce_test {

struct Format {
  int exponent_bits;
  int fraction_bits;
  std::uint32_t nan;         // the canonical one
  bool has_infinity = true;  // if not: all bits set are a NaN, and that is the only one
  int bias() const { return (1 << (exponent_bits - 1)) - 1; }
  std::uint32_t values() const { return 2u << (exponent_bits + fraction_bits); }
  std::uint32_t sign() const { return values() / 2; }
};
inline constexpr Format kFloat16{5, 10, 0x7e00}, kBfloat16{8, 7, 0x7fc0}, kFloat8E4m3{4, 3, 0x7f, false},
    kFloat8E5m2{5, 2, 0x7f};

inline double value_of(Format format, std::uint32_t bits) {
  const int exponent = static_cast<int>(bits >> format.fraction_bits) & ((1 << format.exponent_bits) - 1);
  const int fraction = static_cast<int>(bits & ((1u << format.fraction_bits) - 1));
  const double sign = (bits & format.sign()) != 0 ? -1 : 1;
  const bool is_special = exponent == (1 << format.exponent_bits) - 1;
  if (is_special && format.has_infinity) return fraction != 0 ? std::nan("") : sign * INFINITY;
  if (is_special && fraction == (1 << format.fraction_bits) - 1) return std::nan("");
  const int implicit = exponent != 0 ? 1 << format.fraction_bits : 0;
  return sign * std::ldexp(implicit + fraction, std::max(exponent, 1) - format.bias() - format.fraction_bits);
}

// The bits of the nearest value, ties going to the even one, by scaling to integers and rounding in double precision.
inline std::uint32_t bits_of_nearest(Format format, float value) {
  const std::uint32_t sign = std::signbit(value) ? format.sign() : 0;
  // The first that is too large, whatever it stands for.
  const std::uint32_t end =
      format.has_infinity ? ((1u << format.exponent_bits) - 1) << format.fraction_bits : format.sign() - 1;
  const auto of_magnitude = [&](std::uint32_t bits) {
    return bits < end ? sign | bits : format.has_infinity ? sign | end : format.nan;
  };
  if (std::isnan(value)) return format.nan;
  if (std::isinf(value)) return of_magnitude(end);
  const double magnitude = std::fabs(static_cast<double>(value));
  if (magnitude == 0) return sign;
  const int exponent = std::max(std::ilogb(magnitude), 1 - format.bias());
  const auto units = static_cast<std::uint32_t>(std::nearbyint(std::ldexp(magnitude, format.fraction_bits - exponent)));
  // Units of 2^fraction_bits and more carry the implicit one; both it and a carry add up into the exponent field.
  const auto field = static_cast<std::uint32_t>(exponent + format.bias() - 1) << format.fraction_bits;
  return of_magnitude(field + units);
}

}  // namespace tutti::internal::reduce_test
