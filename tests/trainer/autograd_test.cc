#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <random>

#include "trainer/operations.h"
#include "tutti/error.h"

namespace tutti::trainer {
namespace {

using Function = std::function<Tensor(const std::vector<Tensor>&)>;  // of parameters, to a scalar

std::vector<double> random_values(std::size_t count, int seed) {
  std::mt19937 random(seed);
  std::vector<double> values(count);
  for (double& value : values) value = std::uniform_real_distribution(-2.0, 2.0)(random);
  return values;
}

// Compares backward() with central differences in every element of every parameter.
void expect_right_gradient(const std::vector<Shape>& shapes, const Function& function) {
  std::vector<std::vector<double>> values;
  for (std::size_t p = 0; p < shapes.size(); ++p)
    values.push_back(random_values(shapes[p].count(), 17 + static_cast<int>(p)));
  const auto parameters = [&] {
    std::vector<Tensor> made;
    for (std::size_t p = 0; p < shapes.size(); ++p) made.push_back(Tensor::parameter(shapes[p], values[p]));
    return made;
  };
  const std::vector<Tensor> differentiated = parameters();
  function(differentiated).backward();
  constexpr double kStep = 1e-5;
  for (std::size_t p = 0; p < shapes.size(); ++p) {
    for (std::size_t i = 0; i < values[p].size(); ++i) {
      const double at = values[p][i];
      values[p][i] = at + kStep;
      const double above = function(parameters()).item();
      values[p][i] = at - kStep;
      const double below = function(parameters()).item();
      values[p][i] = at;
      const double expected = (above - below) / (2 * kStep);
      EXPECT_NEAR(differentiated[p].gradient()[i], expected, 1e-8 * (1 + std::abs(expected)))
          << "parameter " << p << ", element " << i;
    }
  }
}

// Gives every element of `a` its own weight, so that mixed-up elements are noticed.
Tensor weighted_sum(const Tensor& a) {
  return sum(mul(a, Tensor::constant(a.shape(), random_values(a.shape().count(), 3))));
}

TEST(Autograd, AddMatchesFiniteDifferences) {
  expect_right_gradient({{3, 2}, {3, 2}}, [](const auto& p) { return weighted_sum(p[0] + p[1]); });
}

TEST(Autograd, AddOfARowToEveryRowMatchesFiniteDifferences) {
  expect_right_gradient({{3, 2}, {1, 2}}, [](const auto& p) { return weighted_sum(p[0] + p[1]); });
}

TEST(Autograd, SubMatchesFiniteDifferences) {
  expect_right_gradient({{3, 2}, {3, 2}}, [](const auto& p) { return weighted_sum(p[0] - p[1]); });
}

TEST(Autograd, MulMatchesFiniteDifferences) {
  expect_right_gradient({{3, 2}, {3, 2}}, [](const auto& p) { return weighted_sum(p[0] * p[1]); });
}

TEST(Autograd, ScaleMatchesFiniteDifferences) {
  expect_right_gradient({{3, 2}}, [](const auto& p) { return weighted_sum(-2.5 * p[0]); });
}

TEST(Autograd, SquareMatchesFiniteDifferences) {
  expect_right_gradient({{3, 2}}, [](const auto& p) { return weighted_sum(square(p[0])); });
}

TEST(Autograd, ReluMatchesFiniteDifferences) {
  expect_right_gradient({{5, 3}}, [](const auto& p) { return weighted_sum(relu(p[0])); });
}

TEST(Autograd, TanhMatchesFiniteDifferences) {
  expect_right_gradient({{5, 3}}, [](const auto& p) { return weighted_sum(tanh(p[0])); });
}

TEST(Autograd, SumAndMeanMatchFiniteDifferences) {
  expect_right_gradient({{5, 7}}, [](const auto& p) { return square(sum(p[0])) + mean(p[0]); });
}

TEST(Autograd, MatmulMatchesFiniteDifferencesInUnevenShapes) {
  for (const auto& [m, k, n] : {std::array<std::size_t, 3>{1, 1, 1}, {2, 3, 4}, {5, 1, 2}, {1, 6, 1}, {4, 3, 1}}) {
    expect_right_gradient({{m, k}, {k, n}}, [](const auto& p) { return weighted_sum(matmul(p[0], p[1])); });
  }
}

TEST(Autograd, ANetworkOfTwoLayersMatchesFiniteDifferences) {
  const Tensor x = Tensor::constant({6, 2}, random_values(12, 1));
  const Tensor y = Tensor::constant({6, 1}, random_values(6, 2));
  expect_right_gradient({{2, 4}, {1, 4}, {4, 3}, {1, 3}, {3, 1}}, [&](const auto& p) {
    const Tensor hidden = relu(matmul(tanh(matmul(x, p[0]) + p[1]), p[2]) + p[3]);
    return mean(square(matmul(hidden, p[4]) - y));
  });
}

TEST(Autograd, AValueUsedSeveralTimesCollectsAllItsGradients) {
  expect_right_gradient({{2, 2}}, [](const auto& p) {
    const Tensor once = square(p[0]);
    return sum(once * once + matmul(once, p[0]) - once);
  });
}

TEST(Autograd, GradientsAddUpUntilZeroed) {
  Tensor w = Tensor::parameter({1, 1}, {3});
  const Tensor loss = square(w);
  loss.backward();
  EXPECT_EQ(w.gradient()[0], 6);
  loss.backward();
  EXPECT_EQ(w.gradient()[0], 12);
  w.zero_gradient();
  loss.backward();
  EXPECT_EQ(w.gradient()[0], 6);
}

TEST(Autograd, EmptyTensorsHaveSumZeroAndNoEffect) {
  const Tensor w = Tensor::parameter({2, 1}, {1, 2});
  const Tensor loss = sum(square(matmul(Tensor::constant({0, 2}, {}), w) - Tensor::constant({0, 1}, {})));
  EXPECT_EQ(loss.item(), 0);
  loss.backward();
  EXPECT_EQ(w.gradient()[0], 0);
  EXPECT_EQ(w.gradient()[1], 0);
}

TEST(Autograd, ConstantsKeepNoGradient) {
  const Tensor data = Tensor::constant({1, 1}, {2});
  const Tensor w = Tensor::parameter({1, 1}, {3});
  (data * w).backward();
  EXPECT_TRUE(data.gradient().empty());
  EXPECT_EQ(w.gradient()[0], 2);
  EXPECT_NO_THROW(square(data).backward());
}

TEST(Autograd, ManyOperationsInARowNeedNoDeepStack) {
  const Tensor w = Tensor::parameter({1, 1}, {1});
  Tensor value = w;
  for (int i = 0; i < 200'000; ++i) value = scale(value, 1);
  value.backward();
  EXPECT_EQ(w.gradient()[0], 1);
}

TEST(Autograd, ShapesThatDoNotFitAreRefusedByName) {
  const Tensor a = Tensor::constant({2, 3}, std::vector<double>(6));
  const Tensor b = Tensor::constant({3, 2}, std::vector<double>(6));
  for (auto operation : {add, sub, mul}) EXPECT_THROW(operation(a, b), Error);
  EXPECT_THROW(matmul(a, a), Error);
  EXPECT_THROW(mean(Tensor::constant({0, 1}, {})), Error);
  EXPECT_THROW(a.item(), Error);
  EXPECT_THROW(a.backward(), Error);
  EXPECT_THROW(Tensor::constant({2, 2}, {1}), Error);
  try {
    matmul(a, a);
  } catch (const Error& error) {
    EXPECT_EQ(error.code, ErrorCode::invalid_argument);
    EXPECT_STREQ(error.what(), "matmul of tensors whose shapes do not fit: 2 x 3 and 2 x 3");
  }
}

}  // namespace
}  // namespace tutti::trainer
