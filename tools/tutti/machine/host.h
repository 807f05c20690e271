// What this host offers to ranks: room for how many, and where to put them.
#pragma once

#include <vector>

#include "topology/processors.h"

namespace tutti::internal::tools {

// Throws UsageError, with the limit that says so, when this host has no room for so many ranks; or when they are none.
void require_room(long ranks);

// The cores that this process may use, from one neighbour to the next; each with its hardware threads that it may use.
std::vector<topology::Processors> usable_cores();

// Where each of `ranks` ranks of this host goes, among what this process may use: a core each, or a hardware thread
// (topology::Machine::place); where they outnumber these, round and round the cores.
std::vector<topology::Processors> places_for(int ranks);

// Whether ranks that are bound without having been asked to be cannot lose by it: there are several, each with a core,
// and nobody has restricted this process to a part of what its container has, perhaps for another job to have the rest.
bool has_core_for_each(int ranks);

}  // namespace tutti::internal::tools
