// Runs the plans of all ranks by the real Operation, in one thread, over channels that use every freedom at random: the
// oracle of prove_plans().
#pragma once

#include <cstdint>
#include <string>

#include "executor/plan_sweep.h"

namespace tutti::internal {

// What one run showed; empty when it ended with every rank's output right. The call is whole, not cut into parts, and
// one leaf a rank. What a plan's `pushes` count are sends, and what a finisher stands behind are waits: Operation takes
// them for that.
std::string error_text_of(const PlannedCall& planned, bool in_place, std::uint64_t seed);

// Writes out each jump past more than waits, for Operation to take it: the waits come before the reduce, which does
// what the finisher would, and all else between is left out. Where one of the waits needs what is left out, the jump
// never happens, and is forgotten.
void write_out_jumps(Plan& plan);

}  // namespace tutti::internal
