// What a message costs between ranks of one host, by how far they are from each other.
#pragma once

#include <array>
#include <string>

#include "plan/placed.h"
#include "schedule/cost_model.h"
#include "selection/choose.h"

namespace tutti::internal::tools {

// Own buffers, which go through rings.
struct DistanceCosts {
  std::array<LinkCost, kDistances> links;     // by Distance
  std::array<std::string, kDistances> known;  // where each comes from
  CostCurve reduce;
  std::string reduce_known;

  const LinkCost& at(Distance distance) const { return links[static_cast<std::size_t>(distance)]; }
};

// Those of a table that tutti tune wrote, as far as they go: it measures neighbours. Else those that were measured for
// this repository. What nobody has measured is assumed, and `known` says so.
DistanceCosts distance_costs(const internal::ChoiceTable& table, const std::string& name);

}  // namespace tutti::internal::tools
