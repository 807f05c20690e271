// The part of the proof that needs no execution.
#pragma once

#include <span>
#include <string>

#include "schedule/layout.h"
#include "schedule/leaves.h"
#include "schedule/proof.h"
#include "schedule/schedule.h"

namespace tutti::internal {

// Thrown inside the verifier where the proof fails; verify() turns it into Proof::reason.
struct Refutation {
  std::string reason;
};

std::string where(int rank, int step, StepKind kind);  // "rank 3, step 7 (reduce)"

// Ranges, side tables, trees, types within a step, and messages sent = messages received. Throws Refutation.
void check_form(std::span<const Schedule> schedules, const Layout& layout, const Goal& goal);

}  // namespace tutti::internal
