// Sockets as owned file descriptors. All are close-on-exec and non-blocking from their first moment, so that a fork in
// another thread inherits none, and no call here waits. None has the number of a standard stream.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

#include "net/network.h"

namespace tutti::internal {

class Socket {
 public:
  Socket() = default;
  explicit Socket(int fd) : fd_(fd) {}
  Socket(Socket&& other) noexcept : fd_(other.release()) {}
  Socket& operator=(Socket&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~Socket();

  int fd() const { return fd_; }
  explicit operator bool() const { return fd_ >= 0; }
  int release() { return std::exchange(fd_, -1); }

 private:
  int fd_ = -1;
};

// Listens at exactly this address and port. Throws Error{system} or {invalid_argument} that names it.
Socket listen_at(const Endpoint& endpoint);

// Listens at the first free port of [first, last]; first == 0: at any. Throws Error{system} that names address and
// range.
Socket listen_in(const Endpoint& address, std::uint16_t first, std::uint16_t last);

// error is 0 when connected, EINPROGRESS when the socket turns writable once it is known (see error_of), EAGAIN when a
// local listener has no room for the moment, and otherwise says why there is no connection.
Socket start_connecting(const Endpoint& endpoint, int& error);

Socket accept_from(int listener, int& error);

int error_of(int fd);        // the pending SO_ERROR
Endpoint own_end(int fd);    // getsockname
Endpoint other_end(int fd);  // getpeername
bool is_same_user(int fd);   // whether the kernel says that the other end of a local socket runs as our user

}  // namespace tutti::internal
