// Which limit stands beside a benchmark's figures.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "bench/limit.h"
#include "bench/options.h"

namespace tutti::internal::tools {

// Of the transport, by processes of the host. nullptr where none is measured: a limit is never guessed.
std::unique_ptr<LimitLoops> loops_for(const BenchOptions& options, int ranks, std::size_t max_bytes);

// What the limit is, or why there is none: lines for the table's head, complete but for the "# limit: " of the first.
std::string limit_words(const BenchOptions& options, int ranks);

}  // namespace tutti::internal::tools
