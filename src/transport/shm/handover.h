// How two ranks of a host give each other their memory and their bells: descriptors over a Unix socket.
#pragma once

#include <memory>

#include "transport/shm/peer.h"
#include "transport/shm/segment.h"

namespace tutti::internal::shm {

// Sends this rank's descriptors. False, with errno, where it cannot.
bool give(int fd, const Segment& own, int bell);

// Takes the peer's; nullptr while nothing has come. A thread of the same process shares the peer's mapping. Throws
// ChannelClosed where the peer has closed the socket, Error where it sent something else.
std::shared_ptr<Peer> take(int fd, int peer);

}  // namespace tutti::internal::shm
