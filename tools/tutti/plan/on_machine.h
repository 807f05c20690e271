// What every algorithm of a call would cost the ranks of one machine, and what it asks of its shared memory.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "plan/candidates.h"
#include "plan/distances.h"
#include "plan/placed.h"

namespace tutti::internal::tools {

// What the schedules do where. A rank's share is that of the rank with most.
struct Traffic {
  std::size_t across_caches = 0, across_packages = 0;  // bytes of all ranks together
  int peers = 0;                                       // that one rank talks to: it has a lane each way with each
  int rings = 0;       // of all ranks: lanes on which some message does not fit its announcement
  int combining = 0;   // ranks that combine inputs
  int inputs = 0;      // of the pass that combines most of them
  int far_inputs = 0;  // of one pass: from ranks that share no cache with the one that combines
};

Traffic traffic_of(std::span<const Schedule> schedules, const Question& question, const PlacedRanks& placed);

// An algorithm as a call would run it, or with groups of ranks in place of hosts.
struct MachineCandidate {
  Candidate candidate;
  std::string by;  // what the groups share; empty: all ranks are on one host, as they are to a call today
  Traffic traffic;
};

// The cheapest first, those that are not allowed last. question: of one host.
std::vector<MachineCandidate> candidates_on(const PlacedRanks& placed, const Question& question,
                                            const internal::Chooser& chooser, const DistanceCosts& costs);

}  // namespace tutti::internal::tools
