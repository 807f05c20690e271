// Who copies the messages of a plan (Copier).
#pragma once

#include <cstddef>
#include <span>

#include "executor/plan_step.h"
#include "types/call.h"

namespace tutti::internal {

// Sets SendStep::copier. `traffic`: as of Plan. crowded: as of Host. both_copy_from: in bytes;
// from there on, of what a rank broadcasts, it and its one reader copy every other message each. After mark_fusible().
void mark_copiers(std::span<PlanStep> steps, std::span<const Traffic> traffic, const Call& call, bool crowded,
                  std::size_t both_copy_from);

}  // namespace tutti::internal
