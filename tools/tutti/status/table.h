// A row for each call that a rank is in, or has made last.
#pragma once

#include <string>
#include <vector>

#include "status/report.h"

namespace tutti::internal::tools {

// Of lanes, which carry what one rank sends another, only those with a call that is not over. What has failed is said
// below the table.
std::string table_of(const std::vector<RankReport>& reports);

}  // namespace tutti::internal::tools
