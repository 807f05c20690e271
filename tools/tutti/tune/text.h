// How tutti tune says what it found.
#pragma once

#include <string>
#include <vector>

#include "selection/choose.h"
#include "tune/check.h"

namespace tutti::internal::tools {

// The table as a file, with comments that say what its parts are. header: comments of its beginning, a line each.
std::string annotated(const internal::ChoiceTable& table, const std::vector<std::string>& header);

// The checks as lines of comments, with the median errors.
std::string check_text(const std::vector<Check>& checks, int ranks);

// One JSON object a check.
std::string check_json(const std::vector<Check>& checks, int ranks);

}  // namespace tutti::internal::tools
