// How far to go along a direction: the strong Wolfe conditions (Nocedal and Wright, section 3.1), found by bracketing
// the zero of the slope and taking the secant through its ends. On a quadratic the first secant is the exact minimum.
#pragma once

#include <optional>
#include <vector>

#include "trainer/optimizer.h"

namespace tutti::trainer {

struct Point {
  std::vector<double> weights;
  std::vector<double> gradient;
  double loss = 0;
};

// The point `from.weights + step * direction` for some step > 0 that meets the conditions; nothing if there is none
// within rounding: near a minimum the loss is flat to the last bit, so there the slope alone decides (the approximate
// Wolfe conditions of Hager and Zhang, SIAM J. Optim. 16, 2005). `direction` should point downhill, else nothing is
// found.
std::optional<Point> line_search(const Point& from, std::span<const double> direction, double first_trial,
                                 const Objective& objective);

}  // namespace tutti::trainer
