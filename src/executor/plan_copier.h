// Who copies the messages of a plan (Copier).
#pragma once

#include <span>

#include "executor/plan_step.h"
#include "types/call.h"

namespace tutti::internal {

// Sets SendStep::copier. `traffic`: as of Plan. crowded: as of Host. After mark_fusible().
void mark_copiers(std::span<PlanStep> steps, std::span<const Traffic> traffic, const Call& call, bool crowded);

}  // namespace tutti::internal
