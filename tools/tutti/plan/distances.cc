#include "plan/distances.h"

#include <fmt/format.h>

#include <set>

namespace tutti::internal::tools {
namespace {

constexpr double kKiB = 1 << 10, kMiB = 1 << 20;
constexpr const char* kMeasured = "measured: bench/results/2026-11-25-links.md";

// Nobody has measured ranks of two packages here. Between packages a cache line is said to take about twice as long as
// between caches of one.
constexpr double kOtherPackage = 2;

// bench/results/2026-11-25-links.md: an AMD EPYC of 2 processors, which shared a cache or did not.
const LinkCost kSharedCache{{{{8, 0.242},
                              {kKiB, 0.305},
                              {4 * kKiB, 0.733},
                              {16 * kKiB, 1.45},
                              {64 * kKiB, 3.72},
                              {256 * kKiB, 10.3},
                              {kMiB, 35.8},
                              {4 * kMiB, 152}}},
                            {{{8, 0.0332},
                              {kKiB, 0.13},
                              {4 * kKiB, 0.28},
                              {16 * kKiB, 0.733},
                              {64 * kKiB, 3.31},
                              {256 * kKiB, 10.3},
                              {kMiB, 35.8},
                              {4 * kMiB, 152}}},
                            true};
const LinkCost kNoSharedCache{{{{8, 0.336},
                                {kKiB, 0.755},
                                {4 * kKiB, 3.71},
                                {16 * kKiB, 5.48},
                                {64 * kKiB, 9.88},
                                {256 * kKiB, 18.9},
                                {kMiB, 86.7},
                                {4 * kMiB, 310}}},
                              {{{8, 0.115},
                                {kKiB, 0.494},
                                {4 * kKiB, 0.632},
                                {16 * kKiB, 1.51},
                                {64 * kKiB, 5.86},
                                {256 * kKiB, 18.4},
                                {kMiB, 86.7},
                                {4 * kMiB, 310}}},
                              true};
const CostCurve kReduce{{{128, 0.0328},
                         {4 * kKiB, 0.0506},
                         {32 * kKiB, 0.442},
                         {256 * kKiB, 4.32},
                         {kMiB, 32.2},
                         {4 * kMiB, 148},
                         {16 * kMiB, 1080}}};

// As many times `curve` as `to` is of `from`, at every size that one of them has.
CostCurve in_proportion(const CostCurve& curve, const CostCurve& to, const CostCurve& from) {
  std::set<double> sizes;
  for (const CostCurve* each : {&curve, &to, &from})
    for (const CostCurve::Point& point : each->points) sizes.insert(point.bytes);
  CostCurve scaled;
  for (const double bytes : sizes)
    scaled.points.push_back({bytes, curve.at(bytes) * (from.at(bytes) > 0 ? to.at(bytes) / from.at(bytes) : 1)});
  return scaled;
}

CostCurve times(CostCurve curve, double factor) {
  for (CostCurve::Point& point : curve.points) point.us *= factor;
  return curve;
}

LinkCost times(const LinkCost& link, double factor) {
  LinkCost all = link;
  all.arrival = times(link.arrival, factor);
  all.busy = times(link.busy, factor);
  return all;
}

}  // namespace

DistanceCosts distance_costs(const internal::ChoiceTable& table, const std::string& name) {
  DistanceCosts costs{{kSharedCache, kNoSharedCache, {}}, {kMeasured, kMeasured, {}}, kReduce, kMeasured};
  const CostModel unmeasured;
  if (!(table.model.local == unmeasured.local)) {
    const LinkCost& near = table.model.local;
    costs.links[0] = costs.links[1] = near;
    costs.links[1].arrival = in_proportion(near.arrival, kNoSharedCache.arrival, kSharedCache.arrival);
    costs.links[1].busy = in_proportion(near.busy, kNoSharedCache.busy, kSharedCache.busy);
    costs.known[0] = fmt::format("measured: {}", name);
    costs.known[1] = "assumed: as many times as much as bench/results/2026-11-25-links.md";
  }
  if (!(table.model.reduce == unmeasured.reduce)) {
    costs.reduce = table.model.reduce;
    costs.reduce_known = fmt::format("measured: {}", name);
  }
  costs.links[2] = times(costs.links[1], kOtherPackage);
  costs.known[2] = fmt::format("assumed: {:g} times the line above", kOtherPackage);
  return costs;
}

}  // namespace tutti::internal::tools
