#include "trainer/train.h"

#include <chrono>
#include <cmath>
#include <string>

#include "trainer/data_parallel.h"
#include "trainer/digest.h"
#include "trainer/operations.h"
#include "trainer/sampler.h"
#include "tutti/error.h"

namespace tutti::trainer {
namespace {

// The part of one step's points that this rank computes with.
struct Batch {
  Tensor features;
  Tensor targets;
  std::size_t points;  // of all ranks together
};

class Training {
 public:
  Training(GradientSync& sync, const Dataset& data, const TrainOptions& options, Device& device)
      : sync_(sync),
        data_(data),
        options_(options),
        device_(device),
        model_{options.basis, options.degree, Scaling::of(data.x)} {}

  TrainResult run(const std::function<void(const Progress&)>& progress) {
    const auto optimizer = make_optimizer();
    std::vector<double> weights(model_.weights(), 0.0);
    const Batch all = all_points();
    std::optional<Sampler> sampler;
    if (options_.batch && *options_.batch < data_.size()) sampler.emplace(data_.size(), *options_.batch, options_.seed);

    TrainResult result;
    const auto start = std::chrono::steady_clock::now();
    const std::int64_t most = options_.steps.value_or(options_.optimizer == OptimizerKind::lbfgs ? 1000 : 10000);
    for (bool converged = false; result.steps < most && !converged;) {
      const Batch batch = sampler ? points_at(sampler->next()) : all;
      const auto report = optimizer->step(
          weights, [&](std::span<const double> at, std::span<double> gradient) { return loss(batch, at, gradient); });
      ++result.steps;
      if (!std::isfinite(report.loss)) fail_diverged(result.steps);
      converged = report.converged;
      const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
      result.steps_per_s = static_cast<double>(result.steps) / elapsed.count();
      if (progress) progress({result.steps, report.loss, report.gradient_norm, result.steps_per_s});
    }
    finish(result, all, std::move(weights));
    return result;
  }

 private:
  std::unique_ptr<Optimizer> make_optimizer() const {
    const auto n = static_cast<double>(model_.weights());
    switch (options_.optimizer) {
      case OptimizerKind::sgd: return make_sgd(options_.learning_rate.value_or(0.5 / n));
      case OptimizerKind::adam: return make_adam(options_.learning_rate.value_or(0.01));
      case OptimizerKind::lbfgs: break;
    }
    return make_lbfgs(model_.weights(), options_.learning_rate.value_or(1));
  }

  Batch all_points() const {
    const Range mine = shard(data_.size(), sync_.rank(), sync_.size());
    return batch(std::span(data_.x).subspan(mine.first, mine.size()),
                 std::span(data_.y).subspan(mine.first, mine.size()), data_.size());
  }

  Batch points_at(std::span<const std::size_t> indices) const {
    const Range mine = shard(indices.size(), sync_.rank(), sync_.size());
    std::vector<double> x, y;
    for (std::size_t i : indices.subspan(mine.first, mine.size())) {
      x.push_back(data_.x[i]);
      y.push_back(data_.y[i]);
    }
    return batch(x, y, indices.size());
  }

  Batch batch(std::span<const double> x, std::span<const double> y, std::size_t points) const {
    return {model_.features(x, device_), Tensor::constant({y.size(), 1}, y, device_), points};
  }

  // The mean squared residual over the batch on all ranks, and its gradient: one all-reduce of both, where they are.
  double loss(const Batch& batch, std::span<const double> at, std::span<double> gradient) {
    const Tensor weights = Tensor::parameter({at.size(), 1}, at, device_);
    const Tensor residuals = matmul(batch.features, weights) - batch.targets;
    const Tensor share = (1.0 / static_cast<double>(batch.points)) * sum(square(residuals));
    share.backward();
    const Array bucket(device_, at.size() + 1);
    const auto put = [&](const Array& from, std::size_t first) {
      device_.run({.step = Step::copy, .count = from.size(), .out = bucket.data() + first, .a = from.data()});
    };
    put(weights.node().gradient, 0);
    put(share.node().values, at.size());
    device_.finish();  // the all-reduce knows nothing of the device's order of things
    sync_.sum(bucket.span());
    std::vector<double> total(bucket.size());
    device_.read(total, bucket.data());
    std::copy(total.begin(), total.end() - 1, gradient.begin());
    return total.back();
  }

  void finish(TrainResult& result, const Batch& all, std::vector<double> weights) {
    std::vector<double> gradient(weights.size());
    const double points = static_cast<double>(data_.size());
    result.ranks = sync_.size();
    result.loss = loss(all, weights, gradient);
    if (!std::isfinite(result.loss)) fail_diverged(result.steps);
    result.residual_sd = std::sqrt(result.loss * points / (points - static_cast<double>(weights.size())));
    Digest digest;
    digest.add(weights);
    result.weights_sha256 = std::move(digest).hex();
    if (!sync_.agree(std::stoull(result.weights_sha256.substr(0, 16), nullptr, 16))) {
      throw Error(ErrorCode::mismatch, "training ended in different weights on different ranks; this rank's hash is " +
                                           result.weights_sha256 +
                                           ": do all ranks run the same program on the same kind of processor?");
    }
    result.coefficients = model_.monomial_coefficients(weights);
    result.weights = std::move(weights);
  }

  [[noreturn]] void fail_diverged(std::int64_t step) const {
    throw Error(ErrorCode::invalid_argument, "training diverged: the loss is not finite at step " +
                                                 std::to_string(step) + "; a smaller learning rate helps");
  }

  GradientSync& sync_;
  const Dataset& data_;
  const TrainOptions& options_;
  Device& device_;
  Polynomial model_;
};

void check_same_on_all_ranks(GradientSync& sync, const Dataset& data, const TrainOptions& options) {
  const double settings[] = {static_cast<double>(options.degree),
                             static_cast<double>(options.basis),
                             static_cast<double>(options.optimizer),
                             options.learning_rate.value_or(-1),
                             static_cast<double>(options.steps.value_or(-1)),
                             options.batch ? static_cast<double>(*options.batch) : -1,
                             static_cast<double>(options.seed)};
  Digest digest;
  digest.add(settings);
  digest.add(data.x);
  digest.add(data.y);
  if (!sync.agree(std::stoull(std::move(digest).hex().substr(0, 16), nullptr, 16))) {
    throw Error(ErrorCode::mismatch, "the ranks were given different points or options to train with; " + data.name +
                                         " should hold the same on every host");
  }
}

}  // namespace

TrainResult train(GradientSync& sync, const Dataset& data, const TrainOptions& options,
                  const std::function<void(const Progress&)>& progress, Device& device) {
  validate(data, options);
  check_same_on_all_ranks(sync, data, options);
  return Training(sync, data, options, device).run(progress);
}

TrainResult train(Communicator& communicator, const Dataset& data, const TrainOptions& options,
                  const std::function<void(const Progress&)>& progress, Device& device) {
  DataParallel sync(communicator);
  return train(sync, data, options, progress, device);
}

}  // namespace tutti::trainer
