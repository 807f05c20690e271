#include "trainer/polynomial.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>

#include "tutti/error.h"

namespace tutti::trainer {
namespace {

using Values = std::vector<double>;

Values unit(std::size_t size, std::size_t where) {
  Values values(size, 0.0);
  values[where] = 1;
  return values;
}

TEST(Scaling, TakesTheEndsToMinusOneAndOne) {
  const Scaling scaling = Scaling::of(Values{7, -3, 2});
  EXPECT_EQ(scaling.apply(-3), -1);
  EXPECT_EQ(scaling.apply(7), 1);
  EXPECT_EQ(scaling.apply(2), 0);
}

TEST(Scaling, SurvivesTheLargestDoubles) {
  for (double least : {-1.7e308, 1e308}) {
    const Scaling scaling = Scaling::of(Values{least, 1.7e308});
    EXPECT_NEAR(scaling.apply(least), -1, 1e-15);
    EXPECT_NEAR(scaling.apply(1.7e308), 1, 1e-15);
  }
}

TEST(Scaling, TakesPointsThatAreAllAtOnePlaceToZero) { EXPECT_EQ(Scaling::of(Values{2, 2, 2}).apply(2), 0); }
TEST(Scaling, RefusesPointsWhoseDistanceHasNoHalf) { EXPECT_THROW(Scaling::of(Values{0, 5e-324}), Error); }

TEST(Features, AreTheChebyshevPolynomials) {
  const Polynomial model{Basis::chebyshev, 6, {}};
  const Values x{-1, -0.7, 0, 0.3, 1};
  const Tensor features = model.features(x);
  ASSERT_EQ(features.shape(), (Shape{5, 7}));
  for (std::size_t i = 0; i < x.size(); ++i) {
    for (std::size_t k = 0; k < 7; ++k) EXPECT_NEAR(features.values()[7 * i + k], std::cos(k * std::acos(x[i])), 1e-14);
  }
}

TEST(Features, AreThePowersOfTheScaledX) {
  const Polynomial model{Basis::monomial, 3, {1, 2}};
  const Tensor features = model.features(Values{2});
  EXPECT_EQ(features.values(), (Values{1, 0.5, 0.25, 0.125}));
}

TEST(Features, OfNoPointsOrDegreeZeroAreFine) {
  EXPECT_EQ((Polynomial{Basis::chebyshev, 4, {}}.features({}).shape()), (Shape{0, 5}));
  EXPECT_EQ((Polynomial{Basis::chebyshev, 0, {}}.features(Values{3}).values()[0]), 1);
}

TEST(MonomialCoefficients, OfUnscaledChebyshevPolynomialsAreTheTextbooks) {
  const auto coefficients = [](int k) {
    return Polynomial{Basis::chebyshev, k, {}}.monomial_coefficients(unit(k + 1, k));
  };
  EXPECT_EQ(coefficients(0), (Values{1}));
  EXPECT_EQ(coefficients(1), (Values{0, 1}));
  EXPECT_EQ(coefficients(2), (Values{-1, 0, 2}));
  EXPECT_EQ(coefficients(5), (Values{0, 5, 0, -20, 0, 16}));
}

TEST(MonomialCoefficients, ExpandAShiftedPower) {
  const Polynomial model{Basis::monomial, 3, {1, 0.5}};  // t = 2 x - 2
  EXPECT_EQ(model.monomial_coefficients(Values{0, 0, 0, 1}), (Values{-8, 24, -24, 8}));
  EXPECT_EQ(model.monomial_coefficients(Values{3, 0.25, 0, 0}), (Values{2.5, 0.5, 0, 0}));
}

TEST(MonomialCoefficients, AreRoundedOnceWhereTheyAreNoDoubles) {
  const Polynomial model{Basis::monomial, 2, {1, 3}};
  EXPECT_EQ(model.monomial_coefficients(Values{0, 1, 0}), (Values{-1.0 / 3, 1.0 / 3, 0}));
  EXPECT_EQ(model.monomial_coefficients(Values{0, 0, 1}), (Values{1.0 / 9, -2.0 / 9, 1.0 / 9}));
}

// At x = 0 the scaled t is 2, so the constant is T_k(2): 1, 2, 7, 26, …, an integer. The terms that cancel in it are up
// to 10^10 times larger for k = 30.
TEST(MonomialCoefficients, LoseNoDigitToCancellation) {
  for (Scaling scaling : {Scaling{-6, 3}, Scaling{-0.375, 0.1875}, Scaling{-6e200, 3e200}}) {
    std::uint64_t before = 1, expected = 2;
    for (int k = 1; k <= 30; ++k) {
      if (std::pow(scaling.half_width, k) > 1e300) break;
      const Polynomial model{Basis::chebyshev, k, scaling};
      EXPECT_EQ(model.monomial_coefficients(unit(k + 1, k))[0], static_cast<double>(expected)) << k;
      before = std::exchange(expected, 4 * expected - before);
    }
  }
}

TEST(MonomialCoefficients, AreRoundedToEvenAndToWhatIsLeftOfTheSmallestDoubles) {
  const auto line = [](double half_width, double weight) {
    return Polynomial{Basis::monomial, 1, {0, half_width}}.monomial_coefficients(Values{0, weight})[1];
  };
  for (const double width : {3.0, 0.7, 1e300, 1e-300, 0x1.fffffffffffffp0})
    for (const double weight : {1.0, -1.0, 7e-9, 5e-324, 0x1.fffffffffffffp-1}) {
      const double quotient = weight / width;
      if (!std::isfinite(quotient) || quotient == 0) continue;
      EXPECT_EQ(line(width, weight), quotient);
    }
  EXPECT_EQ(line(2, 3 * 5e-324), 2 * 5e-324);  // 1.5 of the smallest
  EXPECT_EQ(line(4, 5 * 5e-324), 5e-324);
  EXPECT_EQ(line(0x1p52, 0x1.fffffffffffffp-1021), 0x1p-1072);
}

TEST(MonomialCoefficients, ThatFitNoDoubleAreRefused) {
  EXPECT_THROW((Polynomial{Basis::monomial, 2, {0, 1e-160}}.monomial_coefficients(Values{1, 1, 1})), Error);
  EXPECT_THROW((Polynomial{Basis::monomial, 2, {0, 1e170}}.monomial_coefficients(Values{1, 1, 1})), Error);
}

TEST(MonomialCoefficients, OfZeroWeightsAreZero) {
  EXPECT_EQ((Polynomial{Basis::chebyshev, 2, {5, 0.1}}.monomial_coefficients(Values{0, 0, 0})), (Values{0, 0, 0}));
}

TEST(BasisNames, AreReadBack) {
  for (auto basis : {Basis::chebyshev, Basis::monomial}) EXPECT_EQ(parse_basis(to_string(basis)), basis);
  EXPECT_FALSE(parse_basis("legendre"));
}

}  // namespace
}  // namespace tutti::trainer
