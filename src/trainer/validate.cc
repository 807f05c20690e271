#include <algorithm>
#include <cmath>
#include <set>
#include <string>

#include "trainer/train.h"
#include "tutti/error.h"

namespace tutti::trainer {
namespace {

// Squares of residuals, summed, must neither overflow nor vanish.
constexpr double kLargestY = 1e140;
constexpr double kSmallestY = 1e-140;

[[noreturn]] void refuse(const std::string& why) { throw Error(ErrorCode::invalid_argument, why); }

void validate_options(const TrainOptions& options) {
  if (options.degree < 0) refuse("the degree is " + std::to_string(options.degree) + "; it should be 0 or more");
  if (options.learning_rate && !(*options.learning_rate > 0 && std::isfinite(*options.learning_rate))) {
    refuse("the learning rate is " + std::to_string(*options.learning_rate) +
           "; it should be greater than 0 and finite");
  }
  if (options.steps && *options.steps < 1) {
    refuse("the number of steps is " + std::to_string(*options.steps) + "; it should be 1 or more");
  }
  if (options.batch && *options.batch < 1) refuse("the batch holds 0 points; it should hold 1 or more");
}

void validate_points(const Dataset& data, std::size_t weights) {
  if (data.x.size() != data.y.size()) refuse(data.name + ": there are not as many y as x");
  for (std::size_t i = 0; i < data.size(); ++i) {
    if (!std::isfinite(data.x[i]) || !std::isfinite(data.y[i])) {
      refuse(data.name + ": point " + std::to_string(i) + " (counted from 0) is not finite");
    }
  }
  const std::string wanted = "a polynomial of degree " + std::to_string(weights - 1) + " needs ";
  if (data.size() <= weights) {
    refuse(data.name + ": " + wanted + std::to_string(weights + 1) +
           " points or more (one more than its coefficients, so " + "that there are residuals); there are " +
           std::to_string(data.size()));
  }
  std::set<double> distinct;
  for (std::size_t i = 0; i < data.size() && distinct.size() < weights; ++i) distinct.insert(data.x[i]);
  if (distinct.size() < weights) {
    refuse(data.name + ": " + wanted + std::to_string(weights) + " different x or more; " +
           (distinct.size() == 1 ? "all x are equal" : "there are " + std::to_string(distinct.size())));
  }
  double largest = 0;
  for (double y : data.y) largest = std::max(largest, std::abs(y));
  if (largest > kLargestY || (largest > 0 && largest < kSmallestY)) {
    refuse(data.name + ": the largest |y| should lie between 1e-140 and 1e140: measure y in another unit");
  }
}

}  // namespace

void validate(const Dataset& data, const TrainOptions& options) {
  validate_options(options);
  validate_points(data, static_cast<std::size_t>(options.degree) + 1);
  if (options.optimizer == OptimizerKind::lbfgs && options.batch && *options.batch < data.size()) {
    refuse("lbfgs needs all points at every step: leave out the batch, or train with adam or sgd");
  }
  Scaling::of(data.x);
}

}  // namespace tutti::trainer
