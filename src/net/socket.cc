#include "net/socket.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <unistd.h>

#include <cerrno>

#include "base/descriptor.h"
#include "tutti/error.h"

namespace tutti::internal {
namespace {

constexpr int kBacklog = 4096;  // the kernel clips it to net.core.somaxconn

Socket open_socket(const Endpoint& endpoint) {
  return Socket(above_standard(::socket(endpoint.family(), SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)));
}

constexpr int kTcpRtoMaxMs = 44;  // TCP_RTO_MAX_MS, since Linux 6.15
constexpr int kAgainAfterMs = 1000;
constexpr int kNeverMs = 24 * 3600 * 1000;

// Small messages go out at once. What a network has lost is sent again every second at least, not after twice the time
// that it was away. That goes on without end: who is lost is decided by heartbeats, not by TCP.
void set_pace(const Socket& socket, const Endpoint& endpoint) {
  if (endpoint.is_local()) return;
  const int on = 1;
  ::setsockopt(socket.fd(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  if (::setsockopt(socket.fd(), IPPROTO_TCP, kTcpRtoMaxMs, &kAgainAfterMs, sizeof kAgainAfterMs) == 0)
    ::setsockopt(socket.fd(), IPPROTO_TCP, TCP_USER_TIMEOUT, &kNeverMs, sizeof kNeverMs);
}

Socket try_listening(const Endpoint& endpoint, int& error) {
  Socket socket = open_socket(endpoint);
  const int on = 1;
  if (socket && !endpoint.is_local()) {
    // A job that restarts may take over a port whose last connections are still in TIME_WAIT.
    ::setsockopt(socket.fd(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (endpoint.family() == AF_INET6) ::setsockopt(socket.fd(), IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof on);
  }
  const bool listening =
      socket && ::bind(socket.fd(), endpoint.data(), endpoint.bytes()) == 0 && ::listen(socket.fd(), kBacklog) == 0;
  error = listening ? 0 : errno;
  return listening ? std::move(socket) : Socket();
}

Endpoint end_of(int fd, int (*ask)(int, sockaddr*, socklen_t*)) {
  sockaddr_storage storage{};
  socklen_t bytes = sizeof storage;
  if (ask(fd, reinterpret_cast<sockaddr*>(&storage), &bytes) != 0) return {};
  return {reinterpret_cast<sockaddr*>(&storage), bytes};
}

}  // namespace

Socket::~Socket() {
  if (fd_ >= 0) ::close(fd_);
}

Socket listen_at(const Endpoint& endpoint) {
  int error = 0;
  Socket socket = try_listening(endpoint, error);
  if (socket) return socket;
  std::string hint;
  if (error == EADDRINUSE)
    hint = ": another program, or another job's rank 0, listens there; choose another port (MASTER_PORT, TUTTI_MASTER)";
  if (error == EADDRNOTAVAIL)
    hint = ": it is no address of this host; rank 0 must run where MASTER_ADDR or TUTTI_MASTER says";
  if (error == EACCES) hint = ": ports below 1024 need privileges; choose another";
  throw Error(ErrorCode::system, "cannot listen at " + endpoint.text() + " (" + system_words(error) + ")" + hint);
}

Socket listen_in(const Endpoint& address, std::uint16_t first, std::uint16_t last) {
  int error = 0;
  for (unsigned port = first; port <= last || port == first; ++port) {
    Socket socket = try_listening(address.with_port(static_cast<std::uint16_t>(port)), error);
    if (socket) return socket;
  }
  const std::string where =
      first == 0 ? "" : " at any port of " + std::to_string(first) + "-" + std::to_string(last) + " (TUTTI_PORTS)";
  throw Error(ErrorCode::system, "cannot listen at " + address.address() + where + ": " + system_words(error));
}

Socket start_connecting(const Endpoint& endpoint, int& error) {
  Socket socket = open_socket(endpoint);
  if (socket) set_pace(socket, endpoint);
  error = socket && ::connect(socket.fd(), endpoint.data(), endpoint.bytes()) == 0 ? 0 : errno;
  return socket;
}

Socket accept_from(int listener, int& error) {
  Socket socket(above_standard(::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK)));
  error = socket ? 0 : errno;
  if (socket) set_pace(socket, own_end(socket.fd()));
  return socket;
}

int error_of(int fd) {
  int error = 0;
  socklen_t bytes = sizeof error;
  return ::getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &bytes) == 0 ? error : errno;
}

Endpoint own_end(int fd) { return end_of(fd, &::getsockname); }
Endpoint other_end(int fd) { return end_of(fd, &::getpeername); }

bool is_same_user(int fd) {
  ucred credentials{};
  socklen_t bytes = sizeof credentials;
  return ::getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &credentials, &bytes) == 0 && credentials.uid == ::geteuid();
}

}  // namespace tutti::internal
