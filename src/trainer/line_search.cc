#include "trainer/line_search.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace tutti::trainer {
namespace {

constexpr double kSufficientDecrease = 1e-4;
constexpr double kCurvature = 0.1;       // how much of the initial slope may be left
constexpr double kLossRounding = 1e-14;  // relative differences of the loss below this mean nothing
constexpr double kExpansion = 100;       // the most a trial grows by while no upper end is known
constexpr int kTrials = 40;

struct End {
  double step;
  double slope;
};

// Between the ends of a bracket: where the line through their slopes is zero, or the middle if that says nothing.
double inside(End low, End high, bool bisect) {
  const double width = high.step - low.step;
  const double secant = low.step + width * (-low.slope / (high.slope - low.slope));
  if (bisect || !(high.slope > 0) || !std::isfinite(secant)) return low.step + width / 2;
  return std::clamp(secant, low.step + 1e-3 * width, high.step - 1e-3 * width);
}

// Beyond the last trial, which was still downhill.
double beyond(End previous, End last) {
  const double secant = last.step + (last.step - previous.step) * last.slope / (previous.slope - last.slope);
  if (!(secant > last.step)) return last.step * kExpansion;  // the slope does not rise
  return std::clamp(secant, 1.1 * last.step, kExpansion * last.step);
}

}  // namespace

std::optional<Point> line_search(const Point& from, std::span<const double> direction, double first_trial,
                                 const Objective& objective) {
  const double slope = dot(from.gradient, direction);
  if (!(slope < 0)) return std::nullopt;
  Point trial = from;
  End low{0, slope};
  std::optional<End> high;
  double step = first_trial;
  for (int i = 0; i < kTrials; ++i) {
    for (std::size_t k = 0; k < direction.size(); ++k) trial.weights[k] = from.weights[k] + step * direction[k];
    if (trial.weights == from.weights) return std::nullopt;
    trial.loss = objective(trial.weights, trial.gradient);
    const End here{step, dot(trial.gradient, direction)};
    const bool decreased = trial.loss <= from.loss + kSufficientDecrease * step * slope;
    const bool flat = std::abs(trial.loss - from.loss) <= kLossRounding * std::abs(from.loss) &&
                      here.slope <= (2 * kSufficientDecrease - 1) * slope;
    if ((decreased || flat) && std::abs(here.slope) <= -kCurvature * slope) return trial;
    if (!(decreased || flat) || here.slope > 0) {
      high = here;
      step = inside(low, *high, i % 2 == 1);
    } else {
      const End previous = std::exchange(low, here);
      step = high ? inside(low, *high, i % 2 == 1) : beyond(previous, low);
    }
  }
  return std::nullopt;
}

}  // namespace tutti::trainer
