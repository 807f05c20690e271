// The rules of a table, from the parameters in it: for numbers of ranks and sizes on a grid, the algorithm of the
// catalogue that its schedules make the cheapest.
#pragma once

#include <vector>

#include "selection/choose.h"

namespace tutti::internal::tools {

struct Grid {
  std::vector<int> ranks{2, 3, 4, 8, 16, 32};  // ascending; the last stands for all beyond
  int ranks_per_host = 1;                      // where there are several hosts
};

// hosts: one or several.
std::vector<internal::Rule> make_rules(const CostModel& model, internal::HostCount hosts, const Grid& grid);

}  // namespace tutti::internal::tools
