#include "trainer/operations.h"

#include <cmath>
#include <string>

#include "tutti/error.h"

namespace tutti::trainer {
namespace {

using Node = Tensor::Node;

std::string text(Shape shape) { return std::to_string(shape.rows) + " x " + std::to_string(shape.cols); }

[[noreturn]] void refuse(const char* operation, const Tensor& a, const Tensor& b) {
  throw Error(ErrorCode::invalid_argument, std::string(operation) + " of tensors whose shapes do not fit: " +
                                               text(a.shape()) + " and " + text(b.shape()));
}

// gradient of `input`[i] += derivative(i) * gradient of `out`[i], for every element.
template <class Derivative>
void backward_elementwise(const Node& out, const Tensor& input, Derivative derivative) {
  Node& to = input.node();
  if (!to.needs_gradient) return;
  for (std::size_t i = 0; i < out.gradient.size(); ++i) to.gradient[i] += derivative(i) * out.gradient[i];
}

// out[i] = function(a[i]); derivative(x, y) is that of `function` at x, where its value is y.
template <class Function, class Derivative>
Tensor unary(const Tensor& a, Function function, Derivative derivative) {
  std::vector<double> values(a.values().size());
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = function(a.values()[i]);
  return Tensor::result(a.shape(), std::move(values), {a}, [derivative](Node& out) {
    const Tensor& input = out.inputs[0];
    backward_elementwise(out, input, [&](std::size_t i) { return derivative(input.values()[i], out.values[i]); });
  });
}

double pairwise_sum(std::span<const double> values) {
  if (values.size() <= 16) {
    double total = 0;
    for (double value : values) total += value;
    return total;
  }
  const std::size_t half = values.size() / 2;
  return pairwise_sum(values.first(half)) + pairwise_sum(values.subspan(half));
}

Tensor add_row(const Tensor& a, const Tensor& row) {
  const std::size_t cols = row.shape().cols;
  std::vector<double> values(a.values().begin(), a.values().end());
  for (std::size_t i = 0; i < values.size(); ++i) values[i] += row.values()[i % cols];
  return Tensor::result(a.shape(), std::move(values), {a, row}, [cols](Node& out) {
    backward_elementwise(out, out.inputs[0], [](std::size_t) { return 1.0; });
    Node& to = out.inputs[1].node();
    if (!to.needs_gradient) return;
    for (std::size_t i = 0; i < out.gradient.size(); ++i) to.gradient[i % cols] += out.gradient[i];
  });
}

}  // namespace

Tensor add(const Tensor& a, const Tensor& b) {
  if (a.shape() != b.shape() && b.shape() == Shape{1, a.shape().cols}) return add_row(a, b);
  if (a.shape() != b.shape()) refuse("add", a, b);
  std::vector<double> values(a.values().begin(), a.values().end());
  for (std::size_t i = 0; i < values.size(); ++i) values[i] += b.values()[i];
  return Tensor::result(a.shape(), std::move(values), {a, b}, [](Node& out) {
    for (const Tensor& input : out.inputs) backward_elementwise(out, input, [](std::size_t) { return 1.0; });
  });
}

Tensor sub(const Tensor& a, const Tensor& b) {
  if (a.shape() != b.shape()) refuse("sub", a, b);
  std::vector<double> values(a.values().begin(), a.values().end());
  for (std::size_t i = 0; i < values.size(); ++i) values[i] -= b.values()[i];
  return Tensor::result(a.shape(), std::move(values), {a, b}, [](Node& out) {
    backward_elementwise(out, out.inputs[0], [](std::size_t) { return 1.0; });
    backward_elementwise(out, out.inputs[1], [](std::size_t) { return -1.0; });
  });
}

Tensor mul(const Tensor& a, const Tensor& b) {
  if (a.shape() != b.shape()) refuse("mul", a, b);
  std::vector<double> values(a.values().begin(), a.values().end());
  for (std::size_t i = 0; i < values.size(); ++i) values[i] *= b.values()[i];
  return Tensor::result(a.shape(), std::move(values), {a, b}, [](Node& out) {
    for (int side : {0, 1}) {
      const std::span<const double> other = out.inputs[1 - side].values();
      backward_elementwise(out, out.inputs[side], [&](std::size_t i) { return other[i]; });
    }
  });
}

Tensor scale(const Tensor& a, double factor) {
  return unary(
      a, [factor](double x) { return factor * x; }, [factor](double, double) { return factor; });
}

Tensor square(const Tensor& a) {
  return unary(
      a, [](double x) { return x * x; }, [](double x, double) { return 2 * x; });
}

Tensor relu(const Tensor& a) {
  return unary(
      a, [](double x) { return x > 0 ? x : 0; }, [](double x, double) { return x > 0 ? 1 : 0; });
}

Tensor tanh(const Tensor& a) {
  return unary(
      a, [](double x) { return std::tanh(x); }, [](double, double y) { return 1 - y * y; });
}

Tensor matmul(const Tensor& a, const Tensor& b) {
  const auto [rows, inner] = a.shape();
  const std::size_t cols = b.shape().cols;
  if (b.shape().rows != inner) refuse("matmul", a, b);
  std::vector<double> values(rows * cols, 0.0);
  for (std::size_t i = 0; i < rows; ++i) {
    for (std::size_t k = 0; k < inner; ++k) {
      const double factor = a.values()[i * inner + k];
      for (std::size_t j = 0; j < cols; ++j) values[i * cols + j] += factor * b.values()[k * cols + j];
    }
  }
  return Tensor::result({rows, cols}, std::move(values), {a, b}, [](Node& out) {
    Node& left = out.inputs[0].node();
    Node& right = out.inputs[1].node();
    const std::size_t m = left.shape.rows, depth = left.shape.cols, n = right.shape.cols;
    for (std::size_t i = 0; i < m; ++i) {
      for (std::size_t k = 0; k < depth; ++k) {
        for (std::size_t j = 0; j < n; ++j) {
          const double gradient = out.gradient[i * n + j];
          if (left.needs_gradient) left.gradient[i * depth + k] += gradient * right.values[k * n + j];
          if (right.needs_gradient) right.gradient[k * n + j] += gradient * left.values[i * depth + k];
        }
      }
    }
  });
}

Tensor sum(const Tensor& a) {
  return Tensor::result({1, 1}, {pairwise_sum(a.values())}, {a}, [](Node& out) {
    for (double& gradient : out.inputs[0].node().gradient) gradient += out.gradient[0];
  });
}

Tensor mean(const Tensor& a) {
  if (a.shape().count() == 0) throw Error(ErrorCode::invalid_argument, "the mean of a tensor without elements");
  return scale(sum(a), 1.0 / static_cast<double>(a.shape().count()));
}

}  // namespace tutti::trainer
