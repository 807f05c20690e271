// Matrices of doubles that remember how they were computed, so that backward() can differentiate through them.
//
//   Tensor w = Tensor::parameter({2, 1}, {0, 0});
//   Tensor loss = mean(square(matmul(x, w) - y));     // operations.h
//   loss.backward();
//   w.gradient();                                     // d loss / d w
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <vector>

namespace tutti::trainer {

// Two-dimensional throughout: a column of n values is {n, 1}, a scalar {1, 1}. Rows or columns may be 0.
struct Shape {
  std::size_t rows = 0;
  std::size_t cols = 0;
  std::size_t count() const { return rows * cols; }
  friend bool operator==(Shape, Shape) = default;
};

// A handle: copies share the same values and gradient. Row-major. Not thread-safe; tensors that share no part of a
// graph may be used from different threads.
class Tensor {
 public:
  struct Node;

  // Data: no gradient is kept. `values` holds shape.count() values, else Error{invalid_argument}.
  static Tensor constant(Shape shape, std::vector<double> values);
  // What is trained: backward() adds to its gradient.
  static Tensor parameter(Shape shape, std::vector<double> values);
  // What an operation returns. `backward(node)` adds to the gradients of node.inputs what node.gradient implies; it is
  // kept only if some input needs a gradient.
  static Tensor result(Shape shape, std::vector<double> values, std::vector<Tensor> inputs,
                       std::function<void(Node&)> backward);

  Shape shape() const;
  std::span<const double> values() const;
  double item() const;  // the value of a {1, 1} tensor

  // Of a parameter: the sum of what every backward() since zero_gradient() has added.
  std::span<const double> gradient() const;
  void zero_gradient();

  // Differentiates this {1, 1} tensor by every parameter it was computed from.
  void backward() const;

  Node& node() const { return *node_; }

 private:
  explicit Tensor(std::shared_ptr<Node> node) : node_(std::move(node)) {}
  std::shared_ptr<Node> node_;
};

struct Tensor::Node {
  Node(Shape shape, std::vector<double> values, bool needs_gradient);
  ~Node();  // takes a long chain of operations apart without recursion
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;

  Shape shape;
  std::vector<double> values;
  std::vector<double> gradient;  // as many as values where needed, else none
  std::vector<Tensor> inputs;
  std::function<void(Node&)> backward;
  bool needs_gradient;
};

}  // namespace tutti::trainer
