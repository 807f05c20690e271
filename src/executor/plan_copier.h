// Who copies the messages of a plan (Copier).
#pragma once

#include <cstddef>
#include <span>

#include "executor/host.h"
#include "executor/plan_step.h"
#include "types/call.h"

namespace tutti::internal {

// Sets SendStep::copier, and ReceiveStep::copier. `traffic`: as of Plan. shares: one of two ranks may copy what the
// other would. So messages are split from Host::split_from on. After mark_fusible().
void mark_copiers(std::span<PlanStep> steps, std::span<const Traffic> traffic, const Call& call, const Host& host,
                  bool shares);

}  // namespace tutti::internal
