#include "trainer/optimizer.h"

#include <cmath>

namespace tutti::trainer {

std::string_view to_string(OptimizerKind kind) {
  switch (kind) {
    case OptimizerKind::lbfgs: return "lbfgs";
    case OptimizerKind::adam: return "adam";
    case OptimizerKind::sgd: return "sgd";
  }
  return {};
}

std::optional<OptimizerKind> parse_optimizer(std::string_view name) {
  for (OptimizerKind kind : {OptimizerKind::lbfgs, OptimizerKind::adam, OptimizerKind::sgd}) {
    if (name == to_string(kind)) return kind;
  }
  return std::nullopt;
}

double dot(std::span<const double> a, std::span<const double> b) {
  double total = 0;
  for (std::size_t i = 0; i < a.size(); ++i) total += a[i] * b[i];
  return total;
}

double norm(std::span<const double> a) { return std::sqrt(dot(a, a)); }

namespace {

class Sgd : public Optimizer {
 public:
  explicit Sgd(double learning_rate) : learning_rate_(learning_rate) {}

  Report step(std::span<double> weights, const Objective& objective) override {
    gradient_.resize(weights.size());
    const double loss = objective(weights, gradient_);
    for (std::size_t i = 0; i < weights.size(); ++i) weights[i] -= learning_rate_ * gradient_[i];
    return {loss, norm(gradient_), false};
  }

 private:
  double learning_rate_;
  std::vector<double> gradient_;
};

class Adam : public Optimizer {
 public:
  explicit Adam(double learning_rate) : learning_rate_(learning_rate) {}

  Report step(std::span<double> weights, const Objective& objective) override {
    gradient_.resize(weights.size());
    first_moment_.resize(weights.size());
    second_moment_.resize(weights.size());
    const double loss = objective(weights, gradient_);
    decay_first_ *= kBeta1;
    decay_second_ *= kBeta2;
    for (std::size_t i = 0; i < weights.size(); ++i) {
      first_moment_[i] = kBeta1 * first_moment_[i] + (1 - kBeta1) * gradient_[i];
      second_moment_[i] = kBeta2 * second_moment_[i] + (1 - kBeta2) * gradient_[i] * gradient_[i];
      const double mean = first_moment_[i] / (1 - decay_first_);
      const double variance = second_moment_[i] / (1 - decay_second_);
      weights[i] -= learning_rate_ * mean / (std::sqrt(variance) + kEpsilon);
    }
    return {loss, norm(gradient_), false};
  }

 private:
  static constexpr double kBeta1 = 0.9;
  static constexpr double kBeta2 = 0.999;
  static constexpr double kEpsilon = 1e-8;
  double learning_rate_;
  double decay_first_ = 1;   // kBeta1 to the number of steps
  double decay_second_ = 1;  // kBeta2 to the number of steps
  std::vector<double> gradient_, first_moment_, second_moment_;
};

}  // namespace

std::unique_ptr<Optimizer> make_sgd(double learning_rate) { return std::make_unique<Sgd>(learning_rate); }
std::unique_ptr<Optimizer> make_adam(double learning_rate) { return std::make_unique<Adam>(learning_rate); }

}  // namespace tutti::trainer
