// Matrices of doubles that remember how they were computed, so that backward() can differentiate through them.
//
//   Tensor w = Tensor::parameter({2, 1}, {0, 0});
//   Tensor loss = mean(square(matmul(x, w) - y));     // operations.h
//   loss.backward();
//   w.gradient();                                     // d loss / d w
#pragma once

#include <cstddef>
#include <functional>
#include <initializer_list>
#include <memory>
#include <span>
#include <vector>

#include "trainer/device.h"

namespace tutti::trainer {

// Two-dimensional throughout: a column of n values is {n, 1}, a scalar {1, 1}. Rows or columns may be 0.
struct Shape {
  std::size_t rows = 0;
  std::size_t cols = 0;
  std::size_t count() const { return rows * cols; }
  friend bool operator==(Shape, Shape) = default;
};

// A handle: copies share the same values and gradient, which lie on a device, as does what is computed from them.
// Row-major. Not thread-safe; tensors that share no part of a graph may be used from different threads where their
// devices may.
class Tensor {
 public:
  struct Node;

  // Data: no gradient is kept. `values` holds shape.count() values, else Error{invalid_argument}.
  static Tensor constant(Shape shape, std::span<const double> values, Device& device = cpu());
  static Tensor constant(Shape shape, std::initializer_list<double> values, Device& device = cpu()) {
    return constant(shape, std::span(values.begin(), values.size()), device);
  }
  // What is trained: backward() adds to its gradient.
  static Tensor parameter(Shape shape, std::span<const double> values, Device& device = cpu());
  static Tensor parameter(Shape shape, std::initializer_list<double> values, Device& device = cpu()) {
    return parameter(shape, std::span(values.begin(), values.size()), device);
  }
  // What is computed from no other tensor: the caller sets its node's values.
  static Tensor unset(Shape shape, Device& device);
  // What an operation returns: a tensor on its inputs' device, which is one (else Error{invalid_argument}), and whose
  // node's values the operation sets. `backward(node)` adds to the gradients of node.inputs what node.gradient implies;
  // it is kept only if some input needs a gradient.
  static Tensor result(Shape shape, std::vector<Tensor> inputs, std::function<void(Node&)> backward);

  Shape shape() const;
  Device& device() const;
  std::vector<double> values() const;  // a copy on the host
  double item() const;                 // the value of a {1, 1} tensor

  // Of a parameter: the sum of what every backward() since zero_gradient() has added. A copy on the host.
  std::vector<double> gradient() const;
  void zero_gradient();

  // Differentiates this {1, 1} tensor by every parameter it was computed from.
  void backward() const;

  Node& node() const { return *node_; }

 private:
  explicit Tensor(std::shared_ptr<Node> node) : node_(std::move(node)) {}
  std::shared_ptr<Node> node_;
};

struct Tensor::Node {
  Node(Device& device, Shape shape, bool needs_gradient);  // values of any content
  ~Node();                                                 // takes a long chain of operations apart without recursion
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;

  Device& device;
  Shape shape;
  Array values;
  Array gradient;  // as many as values where needed, else none
  std::vector<Tensor> inputs;
  std::function<void(Node&)> backward;
  bool needs_gradient;
};

}  // namespace tutti::trainer
