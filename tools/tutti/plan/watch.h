// Schedules run in step, for people to watch: in a round each rank can get one message to each other rank.
#pragma once

#include <span>
#include <string>

#include "schedule/layout.h"
#include "schedule/schedule.h"
#include "schedule/verify.h"

namespace tutti::internal::tools {

// Round by round: who sends what to whom, and what each rank holds of each slice afterwards: the numbers of the leaves
// that are combined in it (or, where nothing is combined, whose data it is). The schedules must hold (verify()).
std::string watch(std::span<const Schedule> schedules, const Layout& layout, const Goal& goal);

}  // namespace tutti::internal::tools
