#include "trainer/tensor.h"

#include <algorithm>
#include <string>
#include <unordered_set>
#include <utility>

#include "tutti/error.h"

namespace tutti::trainer {

Tensor::Node::Node(Shape node_shape, std::vector<double> node_values, bool node_needs_gradient)
    : shape(node_shape), values(std::move(node_values)), needs_gradient(node_needs_gradient) {
  if (values.size() != shape.count()) {
    throw Error(ErrorCode::invalid_argument, "a tensor of " + std::to_string(shape.rows) + " x " +
                                                 std::to_string(shape.cols) + " was given " +
                                                 std::to_string(values.size()) + " values");
  }
  if (needs_gradient) gradient.assign(shape.count(), 0.0);
}

Tensor::Node::~Node() {
  std::vector<Tensor> orphans = std::move(inputs);
  while (!orphans.empty()) {
    const Tensor next = std::move(orphans.back());
    orphans.pop_back();
    if (next.node_.use_count() > 1) continue;
    std::move(next.node_->inputs.begin(), next.node_->inputs.end(), std::back_inserter(orphans));
    next.node_->inputs.clear();
  }
}

Tensor Tensor::constant(Shape shape, std::vector<double> values) {
  return Tensor(std::make_shared<Node>(shape, std::move(values), false));
}

Tensor Tensor::parameter(Shape shape, std::vector<double> values) {
  return Tensor(std::make_shared<Node>(shape, std::move(values), true));
}

Tensor Tensor::result(Shape shape, std::vector<double> values, std::vector<Tensor> inputs,
                      std::function<void(Node&)> backward) {
  const bool needs_gradient =
      std::any_of(inputs.begin(), inputs.end(), [](const Tensor& input) { return input.node().needs_gradient; });
  auto node = std::make_shared<Node>(shape, std::move(values), needs_gradient);
  if (needs_gradient) {
    node->inputs = std::move(inputs);
    node->backward = std::move(backward);
  }
  return Tensor(std::move(node));
}

Shape Tensor::shape() const { return node_->shape; }
std::span<const double> Tensor::values() const { return node_->values; }
std::span<const double> Tensor::gradient() const { return node_->gradient; }
void Tensor::zero_gradient() { std::fill(node_->gradient.begin(), node_->gradient.end(), 0.0); }

double Tensor::item() const {
  if (node_->shape != Shape{1, 1}) throw Error(ErrorCode::invalid_argument, "item() of a tensor that is no scalar");
  return node_->values[0];
}

namespace {

// Every node that `last` depends on and that needs a gradient, inputs before what is computed from them.
std::vector<Tensor::Node*> in_order_of_computation(Tensor::Node& last) {
  struct Visit {
    Tensor::Node* node;
    std::size_t next_input;
  };
  std::vector<Tensor::Node*> order;
  std::unordered_set<Tensor::Node*> seen{&last};
  std::vector<Visit> path{{&last, 0}};
  while (!path.empty()) {
    Visit& visit = path.back();
    if (visit.next_input == visit.node->inputs.size()) {
      order.push_back(visit.node);
      path.pop_back();
      continue;
    }
    Tensor::Node& input = visit.node->inputs[visit.next_input++].node();
    if (input.needs_gradient && seen.insert(&input).second) path.push_back({&input, 0});
  }
  return order;
}

}  // namespace

void Tensor::backward() const {
  if (node_->shape != Shape{1, 1}) throw Error(ErrorCode::invalid_argument, "backward() starts at a scalar");
  if (!node_->needs_gradient) return;
  const std::vector<Node*> order = in_order_of_computation(*node_);
  for (Node* node : order) {  // only parameters keep what an earlier backward() left
    if (node->backward) std::fill(node->gradient.begin(), node->gradient.end(), 0.0);
  }
  node_->gradient[0] += 1.0;
  for (auto node = order.rbegin(); node != order.rend(); ++node) {
    if ((*node)->backward) (*node)->backward(**node);
  }
}

}  // namespace tutti::trainer
