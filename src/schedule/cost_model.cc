#include "schedule/cost_model.h"

#include <algorithm>

namespace tutti::internal {

double CostCurve::at(double bytes) const {
  if (points.empty()) return 0;
  if (points.size() == 1 || bytes <= points.front().bytes) return points.front().us;
  auto to = std::ranges::lower_bound(points, bytes, {}, &Point::bytes);
  if (to == points.end()) --to;
  const Point &a = *(to - 1), &b = *to;
  return std::max(0.0, a.us + (b.us - a.us) * (bytes - a.bytes) / (b.bytes - a.bytes));
}

}  // namespace tutti::internal
