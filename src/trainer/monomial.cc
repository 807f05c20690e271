// Polynomial::monomial_coefficients: every double is an integer times a power of two, so the change of basis can be
// done in integers, and only its last step, one division a coefficient, rounds.
#include <algorithm>
#include <boost/multiprecision/cpp_int.hpp>
#include <cmath>
#include <limits>
#include <string>
#include <utility>

#include "trainer/polynomial.h"
#include "tutti/error.h"

namespace tutti::trainer {
namespace {

using Integer = boost::multiprecision::cpp_int;
using Coefficients = std::vector<Integer>;  // lowest power first

constexpr int kMantissaBits = std::numeric_limits<double>::digits;

// The greatest exponent such that every value is an integer times 2^exponent.
int common_exponent(std::span<const double> values) {
  int least = std::numeric_limits<double>::max_exponent;
  for (double value : values) {
    int exponent = least;
    if (value != 0) std::frexp(value, &exponent);
    least = std::min(least, exponent);
  }
  return least - kMantissaBits;
}

// value / 2^exponent, which is an integer.
Integer integer(double value, int exponent) {
  int own = 0;
  const double mantissa = std::frexp(value, &own);
  if (mantissa == 0) return 0;
  return Integer(static_cast<long long>(std::ldexp(mantissa, kMantissaBits))) << (own - kMantissaBits - exponent);
}

// The powers of t in the sum of weights[k] * T_k(t), by T_{k+1} = 2 t T_k - T_{k-1}.
Coefficients from_chebyshev(const Coefficients& weights) {
  Coefficients sum(weights.size()), previous(weights.size()), current(weights.size());
  current[0] = 1;
  for (std::size_t k = 0; k < weights.size(); ++k) {
    for (std::size_t i = 0; i <= k; ++i) sum[i] += weights[k] * current[i];
    Coefficients next(weights.size());
    for (std::size_t i = 0; i + 1 < weights.size(); ++i) next[i + 1] = current[i] * (k == 0 ? 1 : 2);
    for (std::size_t i = 0; i < weights.size(); ++i) next[i] -= previous[i];
    previous = std::exchange(current, std::move(next));
  }
  return sum;
}

// The powers of x in width^degree * (the sum of powers[k] * t^k), t = (x - center) / width, by Horner's rule.
Coefficients unscale(const Coefficients& powers, const Integer& center, const Integer& width) {
  Coefficients result(powers.size());
  Integer factor = 1;  // width^(degree - k)
  for (std::size_t k = powers.size(); k-- > 0; factor *= width) {
    for (std::size_t i = powers.size(); i-- > 1;) result[i] = result[i - 1] - center * result[i];
    result[0] = powers[k] * factor - center * result[0];
  }
  return result;
}

// numerator / denominator * 2^exponent, rounded once, to nearest and ties to even. A quotient of some more bits than a
// double has is enough to know how, with its last bit set where the division leaves a rest: fractions in lowest terms
// would take most of the time of a high degree.
double rounded(const Integer& numerator, const Integer& denominator, int exponent) {
  using Limits = std::numeric_limits<double>;
  if (numerator == 0) return 0;
  const Integer magnitude = abs(numerator);
  const int shift =
      std::max(0, kMantissaBits + 3 + static_cast<int>(msb(denominator)) - static_cast<int>(msb(magnitude)));
  Integer quotient, rest;
  divide_qr(Integer(magnitude << shift), denominator, quotient, rest);
  if (rest != 0) quotient |= 1;
  const int lowest = exponent - shift;  // the exponent of the quotient's last bit
  const int kept = std::max(lowest + static_cast<int>(msb(quotient)) - (kMantissaBits - 1),
                            Limits::min_exponent - kMantissaBits);  // of the last bit that the double has
  const int dropped = std::max(0, kept - lowest);
  Integer mantissa = quotient >> dropped;
  const Integer tail = quotient - (mantissa << dropped), half = dropped > 0 ? Integer(1) << (dropped - 1) : Integer(0);
  if (tail > half || (dropped > 0 && tail == half && (mantissa & 1) != 0)) ++mantissa;
  const double result = std::ldexp(mantissa.convert_to<double>(), lowest + dropped);
  return numerator < 0 ? -result : result;
}

}  // namespace

std::vector<double> Polynomial::monomial_coefficients(std::span<const double> weights) const {
  const int weight_exponent = common_exponent(weights);
  Coefficients exact;
  for (double weight : weights) exact.push_back(integer(weight, weight_exponent));
  if (basis == Basis::chebyshev) exact = from_chebyshev(exact);

  const int x_exponent = common_exponent(std::vector{scaling.center, scaling.half_width});
  const Integer width = integer(scaling.half_width, x_exponent);
  exact = unscale(exact, integer(scaling.center, x_exponent), width);  // powers of x / 2^x_exponent
  const Integer denominator = pow(width, static_cast<unsigned>(degree));

  std::vector<double> coefficients;
  for (int k = 0; k <= degree; ++k) {
    const double coefficient = rounded(exact[k], denominator, weight_exponent - k * x_exponent);
    if (!std::isfinite(coefficient) || (coefficient == 0 && exact[k] != 0)) {
      throw Error(ErrorCode::unsupported, "the coefficient of x^" + std::to_string(k) +
                                              " is too large or too small for a double: measure x in another unit");
    }
    coefficients.push_back(coefficient);
  }
  return coefficients;
}

}  // namespace tutti::trainer
