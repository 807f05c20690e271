// Start here: fits a polynomial to points, data-parallel over the ranks of a communicator.
//
//   const auto points = tutti::trainer::read_csv("points.csv");
//   const auto result = tutti::trainer::train(world, points, {.degree = 5});
//   std::cout << result.to_json() << '\n';
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "trainer/dataset.h"
#include "trainer/device.h"
#include "trainer/gradient_sync.h"
#include "trainer/optimizer.h"
#include "trainer/polynomial.h"

namespace tutti {
class Communicator;
}

namespace tutti::trainer {

// The same on every rank.
struct TrainOptions {
  int degree = 1;
  Basis basis = Basis::chebyshev;
  OptimizerKind optimizer = OptimizerKind::lbfgs;
  // sgd: 0.5 / (degree + 1), stable for every data set, the features being in [-1, 1]; adam: 0.01;
  // lbfgs: 1, the step length that its line search tries first.
  std::optional<double> learning_rate;
  std::optional<std::int64_t> steps;  // at most so many; lbfgs: 1000, and it stops by itself; sgd, adam: 10000
  std::optional<std::size_t> batch;   // points a step, of all ranks together; all points if not given
  std::uint64_t seed = 1;             // of the mini-batches
};

struct Progress {
  std::int64_t step;  // steps done, from 1
  double loss;        // mean of the squared residuals: of the step's batch
  double gradient_norm;
  double steps_per_s;  // since the start
};

struct TrainResult {
  int ranks = 0;
  std::int64_t steps = 0;
  double loss = 0;                   // mean of the squared residuals over all points
  double residual_sd = 0;            // sqrt(sum of the squared residuals / (points - degree - 1))
  std::vector<double> coefficients;  // of the powers of the unscaled x, lowest first
  double steps_per_s = 0;
  std::string weights_sha256;   // of the bytes of `weights`, each least significant byte first
  std::vector<double> weights;  // in the basis trained in, over x scaled to [-1, 1]

  // One line: {"ranks","steps","loss","residual_sd","coefficients","steps_per_s","weights_sha256"}; numbers read back
  // as the same doubles.
  std::string to_json() const;
};

// Throws Error{invalid_argument} where `options` cannot be served or `data` does not determine the polynomial. train()
// does this itself; a launcher may want to know before it starts ranks.
void validate(const Dataset& data, const TrainOptions& options);

// Collective: every rank passes the same points and options, which is checked (Error{mismatch}), and takes its share of
// the points. Weights start at zero. The result is the same on every rank but for steps_per_s; its bits depend on data,
// options and the number of ranks alone. On `device`, which may be another on each rank, are the points, all that is
// computed from them, and the gradients, which are reduced there; the optimizer, whose vectors are as short as the
// weights, runs on the host, since each of its steps begins with a sum that a line search decides by. No step has a
// function whose rounding devices differ in, so every device gives the same bits. `progress` is called after every step
// on every rank, from this thread. Throws Error{invalid_argument} on every rank when training diverges; errors of the
// communicator pass through.
TrainResult train(Communicator& communicator, const Dataset& data, const TrainOptions& options,
                  const std::function<void(const Progress&)>& progress = {}, Device& device = cpu());
TrainResult train(GradientSync& sync, const Dataset& data, const TrainOptions& options,
                  const std::function<void(const Progress&)>& progress = {}, Device& device = cpu());

}  // namespace tutti::trainer
