// The form of shortcuts: what needs no execution.
#pragma once

#include <span>
#include <vector>

#include "schedule/proof.h"
#include "schedule/schedule.h"

namespace tutti::internal {

// Requires check_form() to have passed. Throws Refutation.
void check_shortcuts(std::span<const Schedule> schedules, std::span<const std::vector<Shortcut>> shortcuts);

}  // namespace tutti::internal
