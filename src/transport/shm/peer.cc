#include "transport/shm/peer.h"

#include <poll.h>
#include <unistd.h>

#include <cstdint>

namespace tutti::internal::shm {

Peer::~Peer() {
  if (bell >= 0) ::close(bell);
  if (socket >= 0) ::close(socket);
}

void Peer::look() {
  pollfd end{.fd = socket, .events = POLLRDHUP, .revents = 0};
  if (::poll(&end, 1, 0) > 0) gone.store(true, std::memory_order_release);
}

void Peer::ring() const {
  const std::uint64_t one = 1;
  [[maybe_unused]] const auto ignored = ::write(bell, &one, sizeof one);
}

}  // namespace tutti::internal::shm
