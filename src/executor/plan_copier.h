// Who copies the messages of a plan (Copier).
#pragma once

#include <cstddef>
#include <span>

#include "executor/host.h"
#include "executor/plan_step.h"
#include "types/call.h"

namespace tutti::internal {

// Sets SendStep::copier, and ReceiveHints::may_split. `traffic`: as of Plan. shares: one of two ranks may copy what the
// other would, so long messages of a rank that only sends are split (BetweenCores::split_shared_from, split_from).
// After mark_fusible().
void mark_copiers(std::span<PlanStep> steps, std::span<const Traffic> traffic, const Call& call, const Host& host,
                  bool shares);

}  // namespace tutti::internal
