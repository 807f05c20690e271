// The machine of 64 cores in 8 caches and 2 packages.
#pragma once

#include <string>

#include "plan/placed.h"

namespace tutti::internal::tools {

inline const std::string kTwoSockets = RECORDED "two_sockets.xml";

// On a file, or on a description.
inline PlacedRanks placed_on(const std::string& machine, int ranks) {
  return PlacedRanks(read_machine(machine), "m", ranks);
}

}  // namespace tutti::internal::tools
