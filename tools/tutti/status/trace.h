// The last calls of all ranks as a trace, in the format that Chrome's tracing and Perfetto read.
#pragma once

#include <string>
#include <vector>

#include "status/report.h"

namespace tutti::internal::tools {

// A process of the trace is a rank, a thread of it one of the rank's communicators. A call that is not over lasts until
// the rank was asked.
std::string trace_of(const std::vector<RankReport>& reports);

}  // namespace tutti::internal::tools
