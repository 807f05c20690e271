#include "trainer/optimizer.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "trainer/line_search.h"

namespace tutti::trainer {
namespace {

// Sum of 10^-k * (w[k] - k)^2: condition number 10^(n - 1), minimum 0 at w[k] = k.
double uneven_bowl(std::span<const double> weights, std::span<double> gradient) {
  double loss = 0;
  for (std::size_t k = 0; k < weights.size(); ++k) {
    const double curvature = std::pow(10.0, -static_cast<double>(k));
    const double distance = weights[k] - static_cast<double>(k);
    loss += curvature * distance * distance;
    gradient[k] = 2 * curvature * distance;
  }
  return loss;
}

// Rosenbrock's valley: minimum 0 at (1, 1), far from quadratic on the way there.
double valley(std::span<const double> w, std::span<double> gradient) {
  const double a = 1 - w[0], b = w[1] - w[0] * w[0];
  gradient[0] = -2 * a - 400 * w[0] * b;
  gradient[1] = 200 * b;
  return a * a + 100 * b * b;
}

Optimizer::Report run(Optimizer& optimizer, std::vector<double>& weights, const Objective& objective, int steps) {
  Optimizer::Report report{};
  for (int i = 0; i < steps && !report.converged; ++i) report = optimizer.step(weights, objective);
  return report;
}

TEST(Lbfgs, ReachesTheMinimumOfAnIllConditionedQuadraticAndStops) {
  for (std::size_t n : {1, 2, 5, 8}) {
    std::vector<double> weights(n, 0.0);
    const auto report = run(*make_lbfgs(n), weights, uneven_bowl, 100);
    EXPECT_TRUE(report.converged) << n;
    for (std::size_t k = 0; k < n; ++k) EXPECT_NEAR(weights[k], static_cast<double>(k), 1e-7) << n;
  }
}

TEST(Lbfgs, FollowsRosenbrocksValleyToItsEnd) {
  std::vector<double> weights{-1.2, 1};
  int evaluations = 0;
  const auto counted = [&](std::span<const double> at, std::span<double> gradient) {
    ++evaluations;
    return valley(at, gradient);
  };
  const auto report = run(*make_lbfgs(5), weights, counted, 200);
  EXPECT_TRUE(report.converged);
  EXPECT_NEAR(weights[0], 1, 1e-10);
  EXPECT_NEAR(weights[1], 1, 1e-10);
  EXPECT_LT(evaluations, 300);
}

TEST(Lbfgs, StopsAtOnceWhereItCannotImprove) {
  std::vector<double> weights{1, 1};
  const auto report = make_lbfgs(5)->step(weights, valley);
  EXPECT_TRUE(report.converged);
  EXPECT_EQ(weights, (std::vector<double>{1, 1}));
}

TEST(Lbfgs, TakesNoStepUpAnEndlessSlope) {
  std::vector<double> weights{0};
  const auto downhill_for_ever = [](std::span<const double> at, std::span<double> gradient) {
    gradient[0] = -1;
    return -at[0];
  };
  EXPECT_TRUE(run(*make_lbfgs(5), weights, downhill_for_ever, 10).converged);
}

TEST(LineSearch, FindsTheMinimumOfAQuadraticByItsFirstSecant) {
  int evaluations = 0;
  const auto parabola = [&](std::span<const double> w, std::span<double> gradient) {
    ++evaluations;
    gradient[0] = 2 * (w[0] - 3);
    return (w[0] - 3) * (w[0] - 3);
  };
  const Point from{{0}, {-6}, 9};
  for (double first_trial : {1.0, 0.25, 0.01}) {
    evaluations = 0;
    const auto found = line_search(from, std::vector{6.0}, first_trial, parabola);
    ASSERT_TRUE(found);
    EXPECT_NEAR(found->weights[0], 3, 1e-12);
    EXPECT_EQ(evaluations, 2);
  }
}

TEST(LineSearch, MeetsTheStrongWolfeConditions) {
  const std::vector<std::vector<double>> starts{{-1.2, 1}, {0, 0}, {2, -3}, {10, 10}, {-0.5, 4}};
  for (const auto& start : starts) {
    Point from{start, {0, 0}, 0};
    from.loss = valley(from.weights, from.gradient);
    const std::vector<double> direction{-from.gradient[0], -from.gradient[1]};
    for (double first_trial : {1e-6, 1.0, 1e6}) {
      const auto found = line_search(from, direction, first_trial, valley);
      ASSERT_TRUE(found);
      const double slope = dot(from.gradient, direction);
      const double step = (found->weights[0] - from.weights[0]) / direction[0];
      EXPECT_LE(found->loss, from.loss + 1e-4 * step * slope);
      EXPECT_LE(std::abs(dot(found->gradient, direction)), -0.1 * slope);
    }
  }
}

TEST(LineSearch, DoesNotSettleInAHigherValley) {
  const auto two_valleys = [](std::span<const double> w, std::span<double> gradient) {
    const double x = w[0], a = x * x - 1;
    gradient[0] = 4 * x * a + 0.3;
    return a * a + 0.3 * x;
  };
  Point from{{-1.2}, {0}, 0};
  from.loss = two_valleys(from.weights, from.gradient);
  const double to_the_higher_valley = 0.96 + 1.2;  // its floor is flat, but above where the search starts
  const auto found = line_search(from, std::vector{1.0}, to_the_higher_valley, two_valleys);
  ASSERT_TRUE(found);
  EXPECT_NEAR(found->weights[0], -1.04, 0.05);
}

TEST(LineSearch, BacksOutOfWhereTheLossIsNotFinite) {
  const auto barrier = [](std::span<const double> w, std::span<double> gradient) {  // x - log x; NaN for x < 0
    gradient[0] = 1 - 1 / w[0];
    return w[0] - std::log(w[0]);
  };
  const Point from{{4}, {0.75}, 4 - std::log(4.0)};
  const auto found = line_search(from, std::vector{-0.75}, 100, barrier);
  ASSERT_TRUE(found);
  EXPECT_NEAR(found->weights[0], 1, 0.2);
}

TEST(LineSearch, FindsNothingUphill) {
  const Point from{{1}, {2}, 1};
  const auto parabola = [](std::span<const double> w, std::span<double> gradient) {
    gradient[0] = 2 * w[0];
    return w[0] * w[0];
  };
  EXPECT_FALSE(line_search(from, std::vector{1.0}, 1, parabola));
}

TEST(Sgd, StepsAgainstTheGradient) {
  std::vector<double> weights{5, 5};
  const auto report = make_sgd(0.25)->step(weights, uneven_bowl);
  EXPECT_EQ(weights[0], 2.5);
  EXPECT_DOUBLE_EQ(weights[1], 4.8);
  EXPECT_DOUBLE_EQ(report.loss, 25 + 1.6);
  EXPECT_FALSE(report.converged);
}

TEST(Sgd, ReachesTheMinimumOfAQuadratic) {
  std::vector<double> weights(2, 0.0);
  run(*make_sgd(0.5), weights, uneven_bowl, 300);
  EXPECT_NEAR(weights[0], 0, 1e-12);
  EXPECT_NEAR(weights[1], 1, 1e-12);
}

TEST(Adam, FirstStepHasTheLengthOfTheLearningRateInEveryWeight) {
  std::vector<double> weights{5, 5};
  make_adam(0.125)->step(weights, uneven_bowl);
  EXPECT_NEAR(weights[0], 4.875, 1e-8);
  EXPECT_NEAR(weights[1], 4.875, 1e-8);
}

TEST(Adam, FollowsRosenbrocksValley) {
  std::vector<double> weights{-1.2, 1};
  run(*make_adam(0.02), weights, valley, 5000);
  EXPECT_NEAR(weights[0], 1, 1e-3);
  EXPECT_NEAR(weights[1], 1, 2e-3);
}

TEST(OptimizerNames, AreReadBack) {
  for (auto kind : {OptimizerKind::lbfgs, OptimizerKind::adam, OptimizerKind::sgd})
    EXPECT_EQ(parse_optimizer(to_string(kind)), kind);
  EXPECT_FALSE(parse_optimizer("newton"));
}

}  // namespace
}  // namespace tutti::trainer
