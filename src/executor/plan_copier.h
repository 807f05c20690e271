// Who copies the messages of a plan (Copier).
#pragma once

#include <cstddef>
#include <span>

#include "executor/plan_step.h"
#include "types/call.h"

namespace tutti::internal {

// Sets SendStep::copier. `traffic`: as of Plan. crowded: as of Host. From both_copy_from bytes of a broadcast on, the
// root copies every other message, and its one reader those between. After mark_fusible().
void mark_copiers(std::span<PlanStep> steps, std::span<const Traffic> traffic, const Call& call, bool crowded,
                  std::size_t both_copy_from);

}  // namespace tutti::internal
