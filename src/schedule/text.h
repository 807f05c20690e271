// Schedules as text, for people and for tests.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "schedule/schedule.h"

namespace tutti {

// One line a step; parse_schedules(to_text(s)) == s.
std::string to_text(std::span<const Schedule> schedules);

// Throws Error{invalid_argument} naming the line.
std::vector<Schedule> parse_schedules(std::string_view text);

}  // namespace tutti
