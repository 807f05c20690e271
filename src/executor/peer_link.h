// A communicator's end of the path to one peer, with what has been exchanged over it by completed operations.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "transport/transport.h"

namespace tutti::internal {

struct PeerLink {
  std::unique_ptr<Channel> channel;
  std::uint64_t sent = 0;      // messages
  std::uint64_t received = 0;  // posted receives
  std::uint64_t taken = 0;     // messages that arrived: received or viewed
};

// The channels keep `memory`, which may be null, until their peers have read what lies there. Throws std::bad_alloc.
inline void keep_until_read(const std::shared_ptr<void>& memory, std::span<const PeerLink> links) {
  for (const PeerLink& link : links)
    if (memory != nullptr && link.channel != nullptr) link.channel->keep(memory);
}

}  // namespace tutti::internal
