#include "trainer/operations.h"

#include <algorithm>
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

const double* data(const Tensor& a) { return a.node().values.data(); }

// Sets the values of `result`, element by element, by what is left to say of the task.
Tensor computed(Tensor result, Task task) {
  task.count = result.shape().count();
  task.out = result.node().values.data();
  result.device().run(task);
  return result;
}

// Adds to the gradient of `input`, element by element, if it keeps one.
void add_gradient(const Tensor& input, Task task) {
  Node& to = input.node();
  if (!to.needs_gradient) return;
  task.count = to.gradient.size();
  task.out = to.gradient.data();
  to.device.run(task);
}

// gradient of `input` += factor * gradient of `out`.
void pass_on(const Node& out, const Tensor& input, double factor) {
  add_gradient(input, {.step = Step::add_scaled, .a = out.gradient.data(), .scalar = factor});
}

// b is the gradient of `out`, a the values that the derivative is of.
void pass_on(Step step, const Node& out, const Tensor& input, const Array& values) {
  add_gradient(input, {.step = step, .a = values.data(), .b = out.gradient.data()});
}

std::size_t groups_of(std::size_t rows) {
  return std::max<std::size_t>(1, (rows + kRowsOfGroup - 1) / kRowsOfGroup);  // of no rows the sum is 0
}

// The sums of the columns of a {rows, cols}, level upon level.
Array sum_rows(Device& device, const double* a, std::size_t rows, std::size_t cols) {
  Array sums;
  do {
    const std::size_t groups = groups_of(rows);
    Array level(device, groups * cols);
    device.run(
        {.step = Step::sum_rows, .count = level.size(), .out = level.data(), .a = a, .rows = rows, .cols = cols});
    sums = std::move(level);
    a = sums.data();
    rows = groups;
  } while (rows > 1);
  return sums;
}

// The product of the transpose of a {rows, inner} by b {rows, cols}: a sum over rows.
Array sum_products(Device& device, const Array& a, const Array& b, std::size_t rows, std::size_t inner,
                   std::size_t cols) {
  const std::size_t groups = groups_of(rows);
  Array sums(device, groups * inner * cols);
  device.run({.step = Step::sum_products,
              .count = sums.size(),
              .out = sums.data(),
              .a = a.data(),
              .b = b.data(),
              .rows = rows,
              .inner = inner,
              .cols = cols});
  return groups == 1 ? std::move(sums) : sum_rows(device, sums.data(), groups, inner * cols);
}

Tensor add_row(const Tensor& a, const Tensor& row) {
  const auto backward = [](Node& out) {
    pass_on(out, out.inputs[0], 1);
    if (!out.inputs[1].node().needs_gradient) return;
    const Array sums = sum_rows(out.device, out.gradient.data(), out.shape.rows, out.shape.cols);
    add_gradient(out.inputs[1], {.step = Step::add_scaled, .a = sums.data(), .scalar = 1});
  };
  return computed(Tensor::result(a.shape(), {a, row}, backward),
                  {.step = Step::add_row, .a = data(a), .b = data(row), .cols = row.shape().cols});
}

}  // namespace

Tensor add(const Tensor& a, const Tensor& b) {
  if (a.shape() != b.shape() && b.shape() == Shape{1, a.shape().cols}) return add_row(a, b);
  if (a.shape() != b.shape()) refuse("add", a, b);
  const auto backward = [](Node& out) {
    for (const Tensor& input : out.inputs) pass_on(out, input, 1);
  };
  return computed(Tensor::result(a.shape(), {a, b}, backward), {.step = Step::add, .a = data(a), .b = data(b)});
}

Tensor sub(const Tensor& a, const Tensor& b) {
  if (a.shape() != b.shape()) refuse("sub", a, b);
  const auto backward = [](Node& out) {
    pass_on(out, out.inputs[0], 1);
    pass_on(out, out.inputs[1], -1);
  };
  return computed(Tensor::result(a.shape(), {a, b}, backward), {.step = Step::sub, .a = data(a), .b = data(b)});
}

Tensor mul(const Tensor& a, const Tensor& b) {
  if (a.shape() != b.shape()) refuse("mul", a, b);
  const auto backward = [](Node& out) {
    for (int side : {0, 1}) pass_on(Step::add_product, out, out.inputs[side], out.inputs[1 - side].node().values);
  };
  return computed(Tensor::result(a.shape(), {a, b}, backward), {.step = Step::mul, .a = data(a), .b = data(b)});
}

Tensor scale(const Tensor& a, double factor) {
  const auto backward = [factor](Node& out) { pass_on(out, out.inputs[0], factor); };
  return computed(Tensor::result(a.shape(), {a}, backward), {.step = Step::scale, .a = data(a), .scalar = factor});
}

Tensor square(const Tensor& a) {
  const auto backward = [](Node& out) {
    pass_on(Step::square_gradient, out, out.inputs[0], out.inputs[0].node().values);
  };
  return computed(Tensor::result(a.shape(), {a}, backward), {.step = Step::square, .a = data(a)});
}

Tensor relu(const Tensor& a) {
  const auto backward = [](Node& out) {
    pass_on(Step::relu_gradient, out, out.inputs[0], out.inputs[0].node().values);
  };
  return computed(Tensor::result(a.shape(), {a}, backward), {.step = Step::relu, .a = data(a)});
}

Tensor tanh(const Tensor& a) {
  const auto backward = [](Node& out) { pass_on(Step::tanh_gradient, out, out.inputs[0], out.values); };
  return computed(Tensor::result(a.shape(), {a}, backward), {.step = Step::tanh, .a = data(a)});
}

Tensor matmul(const Tensor& a, const Tensor& b) {
  const auto [rows, inner] = a.shape();
  const std::size_t cols = b.shape().cols;
  if (b.shape().rows != inner) refuse("matmul", a, b);
  const auto backward = [](Node& out) {
    Node& left = out.inputs[0].node();
    Node& right = out.inputs[1].node();
    const std::size_t depth = left.shape.cols, n = right.shape.cols;
    add_gradient(
        out.inputs[0],
        {.step = Step::matmul_gradient, .a = out.gradient.data(), .b = right.values.data(), .inner = depth, .cols = n});
    if (!right.needs_gradient) return;
    const Array sums = sum_products(out.device, left.values, out.gradient, left.shape.rows, depth, n);
    add_gradient(out.inputs[1], {.step = Step::add_scaled, .a = sums.data(), .scalar = 1});
  };
  return computed(Tensor::result({rows, cols}, {a, b}, backward),
                  {.step = Step::matmul, .a = data(a), .b = data(b), .inner = inner, .cols = cols});
}

Tensor sum(const Tensor& a) {
  const auto backward = [](Node& out) {
    add_gradient(out.inputs[0], {.step = Step::increase_by_first, .a = out.gradient.data()});
  };
  const Array total = sum_rows(a.device(), data(a), a.shape().count(), 1);
  return computed(Tensor::result({1, 1}, {a}, backward), {.step = Step::copy, .a = total.data()});
}

Tensor mean(const Tensor& a) {
  if (a.shape().count() == 0) throw Error(ErrorCode::invalid_argument, "the mean of a tensor without elements");
  return scale(sum(a), 1.0 / static_cast<double>(a.shape().count()));
}

}  // namespace tutti::trainer
