// What minimises: SGD, Adam and L-BFGS. They see a function and its gradient only, and do the same arithmetic on every
// rank.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace tutti::trainer {

// Returns the loss at weights[0, n) and writes its gradient to gradient[0, n).
using Objective = std::function<double(std::span<const double> weights, std::span<double> gradient)>;

enum class OptimizerKind { lbfgs, adam, sgd };

std::string_view to_string(OptimizerKind kind);
std::optional<OptimizerKind> parse_optimizer(std::string_view name);

// A resource: holds what it remembers from step to step. Not thread-safe.
class Optimizer {
 public:
  struct Report {
    double loss;           // SGD, Adam: where the step began; L-BFGS: where it ended
    double gradient_norm;  // Euclidean, at the same place
    bool converged;        // a further step would change nothing for the better
  };
  virtual ~Optimizer() = default;

  // Moves weights[0, n) once, in place. n is the same at every step.
  virtual Report step(std::span<double> weights, const Objective& objective) = 0;
};

// weights -= learning_rate * gradient.
std::unique_ptr<Optimizer> make_sgd(double learning_rate);

// Kingma and Ba, "Adam: a method for stochastic optimization", algorithm 1 with its suggested constants.
std::unique_ptr<Optimizer> make_adam(double learning_rate);

// Nocedal and Wright, "Numerical optimization", algorithm 7.5: the two-loop recursion over the last `memory` steps, and
// the line search of line_search.h. The objective must be the same function at every step (no mini-batches).
// `first_trial` is the step length that the line search tries first.
std::unique_ptr<Optimizer> make_lbfgs(std::size_t memory, double first_trial = 1);

double dot(std::span<const double> a, std::span<const double> b);
double norm(std::span<const double> a);

}  // namespace tutti::trainer
