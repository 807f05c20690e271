#include "run/reserved_port.h"

#include <fmt/format.h>
#include <sys/socket.h>

#include <cerrno>
#include <stdexcept>

#include "base/descriptor.h"

namespace tutti::internal::tools {

// Where there is no loopback, a port of no address in particular: the local socket at which the ranks meet is named
// after it.
ReservedPort::ReservedPort() {
  const auto at = internal::has_loopback() ? internal::loopback() : *internal::Endpoint::parse("0.0.0.0", 0);
  socket_ = internal::Socket(above_standard(socket(at.family(), SOCK_STREAM | SOCK_CLOEXEC, 0)));
  const int yes = 1;
  setsockopt(socket_.fd(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  if (bind(socket_.fd(), at.data(), at.bytes()) != 0) {
    throw std::runtime_error(fmt::format("no port of {} is free: {}", at.address(), system_words(errno)));
  }
  port_ = internal::own_end(socket_.fd()).port();
}

}  // namespace tutti::internal::tools
