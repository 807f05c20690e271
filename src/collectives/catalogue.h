// Every algorithm there is, by collective: the table that the runtime, the tools, the tests and README.md share.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "collectives/message.h"
#include "schedule/layout.h"
#include "schedule/schedule.h"
#include "tutti/types.h"

namespace tutti {

struct AlgorithmEntry {
  Collective collective;
  Algorithm algorithm;
  Schedule (*schedule)(int rank, const Layout& layout, const Message& message);
  bool canonical;         // keeps the canonical order (a claim that the tests prove or refute)
  bool several_leaves;    // accepts ranks that hold more than one leaf
  bool pipelined;         // uses message.chunks
  std::string_view idea;  // one line
};

std::span<const AlgorithmEntry> catalogue();

// nullptr where there is none.
const AlgorithmEntry* find_algorithm(Collective collective, Algorithm algorithm);

// All ranks' schedules. Throws Error{invalid_argument} where the algorithm does not take the layout.
std::vector<Schedule> build_all(const AlgorithmEntry& entry, const Layout& layout, const Message& message);

}  // namespace tutti
