// What this host offers to ranks: room for how many, and the cores to put them on.
#pragma once

#include <sched.h>

#include <vector>

namespace tutti::tools {

// Throws UsageError, with the limit that says so, when this host has no room for so many ranks; or when they are none.
void require_room(long ranks);

// The cores that this process may use, in the machine's order; each with all of its hardware threads.
std::vector<cpu_set_t> usable_cores();

}  // namespace tutti::tools
