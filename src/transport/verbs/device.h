// The fabric behind a real device.
#pragma once

#include <memory>

#include "transport/verbs/fabric.h"
#include "transport/verbs/ports.h"

namespace tutti::internal::verbs {

// Opens the port that choose() picks for a rank that runs near memory node `node` (-1: not known). Throws
// Error{unsupported} with the reasons where there is none, and Error{system} where the device refuses.
std::shared_ptr<Fabric> open_device(const PortRequest& request, int node = -1);

}  // namespace tutti::internal::verbs
