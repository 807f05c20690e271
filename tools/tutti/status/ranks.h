// Where reports come from: ranks of this host that run as our user, or files.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "status/report.h"

namespace tutti::internal::tools {

// The ranks of each job that listen on this host, by job, in order.
std::map<std::string, std::vector<int>> find_jobs();

// Asks all of them at once. A rank that says nothing for a second counts as one that does not answer: then its report
// says why.
std::vector<RankReport> ask(const std::string& job, const std::vector<int>& ranks, bool with_calls);

// What `jobs` have written to the directory; all jobs where `job` is empty. Throws UsageError where there is nothing.
std::vector<RankReport> read_dumps(const std::string& directory, const std::string& job);

}  // namespace tutti::internal::tools
