// Who holds up a job.
#pragma once

#include <string>
#include <vector>

#include "status/report.h"

namespace tutti::internal::tools {

// In a sentence or two: the straggler, for whom others wait and who waits for nobody; or the ranks that wait for each
// other in a circle. Ranks that have waited for less than a tenth of a second do not count. A rank of the job of which
// there is no report counts as one that says nothing.
std::string verdict_on(const std::vector<RankReport>& reports);

// "0.4 s", "12 min".
std::string age(std::int64_t us);

}  // namespace tutti::internal::tools
