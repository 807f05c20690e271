// Ranks that are threads of one process, and share a hub.
#pragma once

#include <memory>

#include "transport/connector.h"
#include "transport/inproc/hub.h"

namespace tutti::internal::inproc {

std::unique_ptr<Connector> make_connector(std::shared_ptr<Hub> hub, Sleeper& sleeper);

}  // namespace tutti::internal::inproc
