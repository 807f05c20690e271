// Which part a guardian has in the job: nodes.h.
#pragma once

#include <memory>

#include "run/nodes.h"

namespace tutti::internal::tools {

// Throws tutti::Error where node 0 cannot listen, or the others do not know by which secret or address to reach it.
std::unique_ptr<Nodes> meet_nodes(const Job& job);

}  // namespace tutti::internal::tools
