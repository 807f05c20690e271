#include "trainer/tensor.h"

#include <algorithm>
#include <string>
#include <unordered_set>
#include <utility>

#include "tutti/error.h"

namespace tutti::trainer {

namespace {

void fill(Device& device, const Array& array, double value) {
  device.run({.step = Step::fill, .count = array.size(), .out = array.data(), .scalar = value});
}

std::vector<double> on_host(Device& device, const Array& array) {
  std::vector<double> values(array.size());
  device.read(values, array.data());
  return values;
}

void check_count(Shape shape, std::size_t count) {
  if (count == shape.count()) return;
  throw Error(ErrorCode::invalid_argument, "a tensor of " + std::to_string(shape.rows) + " x " +
                                               std::to_string(shape.cols) + " was given " + std::to_string(count) +
                                               " values");
}

}  // namespace

Tensor::Node::Node(Device& node_device, Shape node_shape, bool node_needs_gradient)
    : device(node_device),
      shape(node_shape),
      values(node_device, node_shape.count()),
      needs_gradient(node_needs_gradient) {
  if (!needs_gradient) return;
  gradient = Array(device, shape.count());
  fill(device, gradient, 0);
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

Tensor Tensor::constant(Shape shape, std::span<const double> values, Device& device) {
  check_count(shape, values.size());
  Tensor made = unset(shape, device);
  device.write(made.node().values.data(), values);
  return made;
}

Tensor Tensor::parameter(Shape shape, std::span<const double> values, Device& device) {
  check_count(shape, values.size());
  auto node = std::make_shared<Node>(device, shape, true);
  device.write(node->values.data(), values);
  return Tensor(std::move(node));
}

Tensor Tensor::unset(Shape shape, Device& device) { return Tensor(std::make_shared<Node>(device, shape, false)); }

Tensor Tensor::result(Shape shape, std::vector<Tensor> inputs, std::function<void(Node&)> backward) {
  bool needs_gradient = false;
  for (const Tensor& input : inputs) {
    needs_gradient = needs_gradient || input.node().needs_gradient;
    if (&input.device() != &inputs.front().device())
      throw Error(ErrorCode::invalid_argument, "an operation on tensors of different devices: move them to one first");
  }
  auto node = std::make_shared<Node>(inputs.front().device(), shape, needs_gradient);
  if (needs_gradient) {
    node->inputs = std::move(inputs);
    node->backward = std::move(backward);
  }
  return Tensor(std::move(node));
}

Shape Tensor::shape() const { return node_->shape; }
Device& Tensor::device() const { return node_->device; }
std::vector<double> Tensor::values() const { return on_host(node_->device, node_->values); }
std::vector<double> Tensor::gradient() const { return on_host(node_->device, node_->gradient); }
void Tensor::zero_gradient() { fill(node_->device, node_->gradient, 0); }

double Tensor::item() const {
  if (node_->shape != Shape{1, 1}) throw Error(ErrorCode::invalid_argument, "item() of a tensor that is no scalar");
  return values()[0];
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
    if (node->backward) fill(node->device, node->gradient, 0);
  }
  node_->device.run({.step = Step::increase, .count = 1, .out = node_->gradient.data(), .scalar = 1});
  for (auto node = order.rbegin(); node != order.rend(); ++node) {
    if ((*node)->backward) (*node)->backward(**node);
  }
}

}  // namespace tutti::trainer
