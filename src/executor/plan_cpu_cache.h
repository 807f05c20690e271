// Which steps of a plan write past the cache, and which fetch lines for writing.
#pragma once

#include <cstddef>
#include <span>

#include "executor/host.h"
#include "executor/plan_step.h"
#include "types/collective.h"

namespace tutti::internal {

// Marks what is written and not read again: it need not push other things out of the cache. After mark_fusible().
void mark_past_cache(std::span<PlanStep> steps, std::span<const PlanSource> sources);

// Sets fetches_to_write where that pays, for a call by two ranks whose longer buffer has `bytes`.
void mark_fetches(std::span<PlanStep> steps, Collective collective, std::size_t bytes, const Host& host);

}  // namespace tutti::internal
