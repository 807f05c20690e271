// A communicator's end of the path to one peer, with what has been exchanged over it by completed operations.
#pragma once

#include <cstdint>
#include <memory>

#include "transport/transport.h"

namespace tutti::internal {

struct PeerLink {
  std::unique_ptr<Channel> channel;
  std::uint64_t sent = 0;      // messages
  std::uint64_t received = 0;  // posted receives
  std::uint64_t taken = 0;     // messages that arrived: received or viewed
};

}  // namespace tutti::internal
