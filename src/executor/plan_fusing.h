// Which steps a reduce may do in its own pass: stores for peers, and the end of a reduction.
#pragma once

#include <span>

#include "executor/plan_step.h"

namespace tutti::internal {

// A reduce whose result is sent by the steps right behind it may write to those peers at once. So may a copy whose
// source they send. Sets `pushes`, `sends_source` and `fused`.
void mark_fusible(std::span<PlanStep> steps, std::span<const PlanSource> sources);

// Sets `finisher`.
void mark_finishers(std::span<PlanStep> steps, std::span<const PlanSource> sources);

}  // namespace tutti::internal
