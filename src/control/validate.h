// What is wrong with settings in themselves, before any rank is asked.
#pragma once

#include "tutti/settings.h"

namespace tutti::internal {

// Throws Error{invalid_argument} that says which setting is wrong and what it should be. Also Error{system} where this
// host has no such interface. A rank that is too high is not found here: rank 0 finds it, and tells all ranks.
void validate(const Settings& settings);

}  // namespace tutti::internal
