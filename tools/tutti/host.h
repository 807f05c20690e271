// What this host offers to ranks: room for how many, and the cores to put them on.
#pragma once

#include <sched.h>

#include <string>
#include <vector>

namespace tutti::tools {

// The most ranks that fit here, and the limit that says so, as part of a sentence: "the limit on open files (ulimit
// -n)".
struct Room {
  long ranks;
  std::string limit;
};
Room room_for_ranks();

// The cores that this process may use, in the machine's order; each with all of its hardware threads.
std::vector<cpu_set_t> usable_cores();

}  // namespace tutti::tools
