// Every operation on a GPU, forward and backward, beside the CPU's. On a fake device, and on a real one.
#include "trainer/operations.h"

#include <bit>
#include <cmath>
#include <functional>
#include <random>

#include "trainer/cuda/on_gpu.h"
#include "trainer/polynomial.h"
#include "tutti/error.h"

namespace tutti::trainer {
namespace {

using Values = std::vector<double>;
using Function = std::function<Tensor(const std::vector<Tensor>&)>;

Values random_values(std::size_t count, unsigned seed) {
  std::mt19937 random(seed);
  Values values(count);
  for (double& value : values) value = std::uniform_real_distribution(-2.0, 2.0)(random);
  return values;
}

// What a function gives, and the gradients by its parameters of its elements' sum, each weighted as nothing else is.
struct Outcome {
  std::vector<Values> values;  // the function's, then the gradients
};

Outcome outcome_on(Device& device, const std::vector<Shape>& shapes, const Function& function) {
  std::vector<Tensor> parameters;
  for (std::size_t p = 0; p < shapes.size(); ++p)
    parameters.push_back(
        Tensor::parameter(shapes[p], random_values(shapes[p].count(), static_cast<unsigned>(p)), device));
  const Tensor out = function(parameters);
  EXPECT_EQ(&out.device(), &device);
  const Tensor weights = Tensor::constant(out.shape(), random_values(out.shape().count(), 99), device);
  const Tensor loss = sum(mul(out, weights));
  loss.backward();
  loss.backward();  // adds up
  Outcome outcome{{out.values(), {loss.item()}}};
  for (const Tensor& each : parameters) outcome.values.push_back(each.gradient());
  return outcome;
}

std::vector<std::uint64_t> bits(const Values& values) {
  std::vector<std::uint64_t> all;
  for (const double value : values) all.push_back(std::bit_cast<std::uint64_t>(value));
  return all;
}

class GpuOperation : public OnGpu {
 protected:
  void expect_same(const std::vector<Shape>& shapes, const Function& function, double relative = 0) {
    const auto device = gpu();
    const Outcome here = outcome_on(cpu(), shapes, function), there = outcome_on(*device, shapes, function);
    ASSERT_EQ(here.values.size(), there.values.size());
    for (std::size_t k = 0; k < here.values.size(); ++k) {
      ASSERT_EQ(here.values[k].size(), there.values[k].size());
      if (relative == 0) {
        EXPECT_EQ(bits(here.values[k]), bits(there.values[k])) << k;
        continue;
      }
      for (std::size_t i = 0; i < here.values[k].size(); ++i)
        EXPECT_NEAR(here.values[k][i], there.values[k][i], relative * (1 + std::abs(here.values[k][i]))) << k;
    }
  }
  void expect_same_of_each(const Function& function, bool binary = true) {
    for (const Shape shape : {Shape{1, 1}, {3, 2}, {33, 5}, {0, 4}, {700, 3}})
      expect_same(binary ? std::vector{shape, shape} : std::vector{shape}, function);
  }
};

TEST_F(GpuOperation, AddGivesTheBitsOfTheCpu) {
  expect_same_of_each([](const auto& p) { return p[0] + p[1]; });
}
TEST_F(GpuOperation, AddOfARowGivesTheBitsOfTheCpu) {
  for (const std::size_t rows : {2u, 32u, 33u, 1025u})
    expect_same({{rows, 3}, {1, 3}}, [](const auto& p) { return p[0] + p[1]; });
}
TEST_F(GpuOperation, SubGivesTheBitsOfTheCpu) {
  expect_same_of_each([](const auto& p) { return p[0] - p[1]; });
}
TEST_F(GpuOperation, MulGivesTheBitsOfTheCpu) {
  expect_same_of_each([](const auto& p) { return p[0] * p[1]; });
}
TEST_F(GpuOperation, ScaleGivesTheBitsOfTheCpu) {
  expect_same_of_each([](const auto& p) { return -2.7 * p[0]; }, false);
}
TEST_F(GpuOperation, SquareGivesTheBitsOfTheCpu) {
  expect_same_of_each([](const auto& p) { return square(p[0]); }, false);
}
TEST_F(GpuOperation, ReluGivesTheBitsOfTheCpu) {
  expect_same_of_each([](const auto& p) { return relu(p[0]); }, false);
}
TEST_F(GpuOperation, SumGivesTheBitsOfTheCpu) {
  expect_same_of_each([](const auto& p) { return sum(p[0]); }, false);
}
TEST_F(GpuOperation, MeanGivesTheBitsOfTheCpu) {
  expect_same({{1057, 1}}, [](const auto& p) { return mean(p[0]); });
}

// CUDA's tanh is another, within 1 unit in the last place, the CPU's within 1 of the truth too.
TEST_F(GpuOperation, TanhIsTheCpusToRounding) {
  expect_same(
      {{33, 5}}, [](const auto& p) { return tanh(p[0]); }, 1e-14);
}

TEST_F(GpuOperation, MatmulGivesTheBitsOfTheCpuInUnevenShapes) {
  for (const auto& [m, k, n] : {std::array<std::size_t, 3>{1, 1, 1},
                                {2, 3, 4},
                                {5, 1, 2},
                                {1, 6, 1},
                                {32, 3, 1},
                                {33, 7, 2},
                                {2049, 3, 1},
                                {0, 2, 3},
                                {4, 0, 3}})
    expect_same({{m, k}, {k, n}}, [](const auto& p) { return matmul(p[0], p[1]); });
}

TEST_F(GpuOperation, ANetworkOfTwoLayersGivesTheBitsOfTheCpu) {
  const Values x = random_values(2 * 100, 7);
  expect_same({{2, 4}, {1, 4}, {4, 3}, {1, 3}, {3, 1}}, [&](const auto& p) {
    const Tensor points = Tensor::constant({100, 2}, x, p[0].device());
    return matmul(relu(matmul(square(matmul(points, p[0]) + p[1]), p[2]) + p[3]), p[4]);
  });
}

TEST_F(GpuOperation, FeaturesAreTheBitsOfTheCpu) {
  const auto device = gpu();
  for (const Basis basis : {Basis::chebyshev, Basis::monomial})
    for (const int degree : {0, 1, 2, 10})
      for (const std::size_t points : {1u, 200u}) {
        const Polynomial model{basis, degree, {0.3, 1.7}};
        const Values x = random_values(points, 5);
        EXPECT_EQ(bits(model.features(x).values()), bits(model.features(x, *device).values()));
      }
}

// More than the stage of copies holds, and more elements than there are threads.
TEST_F(GpuOperation, LongTensorsComeAndGoWhole) {
  const auto device = gpu();
  const Values values = random_values(700'001, 3);
  const Tensor there = Tensor::constant({values.size(), 1}, values, *device);
  EXPECT_EQ(there.values(), values);
  const Tensor here = Tensor::constant({values.size(), 1}, values);
  EXPECT_EQ(square(there).values(), square(here).values());
  EXPECT_EQ(sum(there).item(), sum(here).item());
}

TEST_F(GpuOperation, TensorsOfTwoDevicesAreRefused) {
  const auto device = gpu();
  const Tensor here = Tensor::constant({1, 1}, {2}), there = Tensor::constant({1, 1}, {2}, *device);
  try {
    add(here, there);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code, ErrorCode::invalid_argument);
  }
}

}  // namespace
}  // namespace tutti::trainer
