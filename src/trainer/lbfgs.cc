#include <algorithm>
#include <deque>
#include <limits>

#include "trainer/line_search.h"
#include "trainer/optimizer.h"

namespace tutti::trainer {
namespace {

// How the gradient changed over one step.
struct Pair {
  std::vector<double> step;             // s = new weights - old weights
  std::vector<double> gradient_change;  // y = new gradient - old gradient
  double inverse_curvature;             // 1 / (y . s)
};

std::vector<double> difference(std::span<const double> a, std::span<const double> b) {
  std::vector<double> result(a.begin(), a.end());
  for (std::size_t i = 0; i < result.size(); ++i) result[i] -= b[i];
  return result;
}

// to += factor * from
void add_scaled(std::span<double> to, double factor, std::span<const double> from) {
  for (std::size_t i = 0; i < to.size(); ++i) to[i] += factor * from[i];
}

class Lbfgs : public Optimizer {
 public:
  Lbfgs(std::size_t memory, double first_trial) : memory_(memory), first_trial_(first_trial) {}

  Report step(std::span<double> weights, const Objective& objective) override {
    if (here_.weights.empty()) {
      here_.weights.assign(weights.begin(), weights.end());
      here_.gradient.resize(weights.size());
      here_.loss = objective(here_.weights, here_.gradient);
      rounding_ = std::numeric_limits<double>::epsilon() * norm(here_.gradient);
    }
    if (norm(here_.gradient) <= rounding_) return {here_.loss, norm(here_.gradient), true};
    std::optional<Point> next = line_search(here_, downhill(), first_trial_, objective);
    if (!next && !pairs_.empty()) {  // what is remembered misleads: start again from the gradient alone
      pairs_.clear();
      next = line_search(here_, downhill(), first_trial_, objective);
    }
    if (!next) return {here_.loss, norm(here_.gradient), true};
    remember(*next);
    here_ = std::move(*next);
    std::copy(here_.weights.begin(), here_.weights.end(), weights.begin());
    return {here_.loss, norm(here_.gradient), false};
  }

 private:
  // Minus the inverse Hessian as the pairs show it, times the gradient.
  std::vector<double> downhill() const {
    std::vector<double> direction(here_.gradient.size());
    add_scaled(direction, -1, here_.gradient);
    std::vector<double> taken;
    for (auto pair = pairs_.rbegin(); pair != pairs_.rend(); ++pair) {
      taken.push_back(pair->inverse_curvature * dot(pair->step, direction));
      add_scaled(direction, -taken.back(), pair->gradient_change);
    }
    if (!pairs_.empty()) {
      const auto& y = pairs_.back().gradient_change;
      const double length = 1 / (pairs_.back().inverse_curvature * dot(y, y));
      for (double& value : direction) value *= length;
    }
    for (const Pair& pair : pairs_) {
      const double given = pair.inverse_curvature * dot(pair.gradient_change, direction);
      add_scaled(direction, taken.back() - given, pair.step);
      taken.pop_back();
    }
    return direction;
  }

  void remember(const Point& next) {
    Pair pair{difference(next.weights, here_.weights), difference(next.gradient, here_.gradient), 0};
    const double curvature = dot(pair.step, pair.gradient_change);
    if (!(curvature > 0)) return;  // lost in rounding; the pair would make the direction meaningless
    pair.inverse_curvature = 1 / curvature;
    pairs_.push_back(std::move(pair));
    if (pairs_.size() > memory_) pairs_.pop_front();
  }

  std::size_t memory_;
  double first_trial_;
  Point here_;           // where the last step ended
  double rounding_ = 0;  // a gradient no longer than this is noise: the first one's length, times a double's precision
  std::deque<Pair> pairs_;
};

}  // namespace

std::unique_ptr<Optimizer> make_lbfgs(std::size_t memory, double first_trial) {
  return std::make_unique<Lbfgs>(memory, first_trial);
}

}  // namespace tutti::trainer
