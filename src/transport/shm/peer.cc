#include "transport/shm/peer.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>

namespace tutti::internal::shm {
namespace {

// Whether the process that made the other end of a Unix socket has ended. False where that cannot be known.
bool has_maker_ended(int socket) {
  ucred maker{};
  socklen_t bytes = sizeof maker;
  if (::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &maker, &bytes) != 0 || maker.pid <= 0) return false;
  const int process = static_cast<int>(::syscall(SYS_pidfd_open, maker.pid, 0));
  if (process < 0) return errno == ESRCH;
  pollfd end{.fd = process, .events = POLLIN, .revents = 0};
  const bool has_ended = ::poll(&end, 1, 0) > 0;
  ::close(process);
  return has_ended;
}

}  // namespace

Peer::~Peer() {
  if (bell >= 0) ::close(bell);
  if (socket >= 0) ::close(socket);
}

void Peer::look() {
  pollfd end{.fd = socket, .events = POLLRDHUP, .revents = 0};
  // A forked child may hold the peer's end open.
  if (::poll(&end, 1, 0) > 0 || has_maker_ended(socket)) gone.store(true, std::memory_order_release);
}

void Peer::ring() const {
  const std::uint64_t one = 1;
  [[maybe_unused]] const auto ignored = ::write(bell, &one, sizeof one);
}

}  // namespace tutti::internal::shm
