// Who copies the messages of a plan (Copier).
#pragma once

#include <cstdint>
#include <span>

#include "executor/plan_step.h"
#include "types/call.h"

namespace tutti::internal {

// Sets SendStep::copier. `arrivals`: messages that arrive from each peer. crowded: as of Host. After mark_fusible().
void mark_copiers(std::span<PlanStep> steps, std::span<const std::uint32_t> arrivals, const Call& call, bool crowded);

}  // namespace tutti::internal
