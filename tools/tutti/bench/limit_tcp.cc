// The loops of a collective over TCP: two processes, one connection on the loopback.
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "bench/limit.h"
#include "tutti/error.h"
#include "types/collective.h"

namespace tutti::internal::tools {

namespace {

// What process `me` of two sends and receives of a message of `bytes`.
struct Traffic {
  std::size_t out, in;
};
Traffic traffic_of(Collective collective, int me, std::size_t bytes) {
  const Distribution holds(collective, 2);
  if (!holds.traits.has_bytes()) return {1, 1};
  const auto sends = [&](int from, int row) {
    if (holds.traits.is_scan()) return from == 0;
    return holds.gets(1 - from, row) && (holds.traits.combines() || holds.origin(row) == from);
  };
  const std::size_t row_bytes = bytes / static_cast<std::size_t>(holds.traits.buffer_rows(2));
  Traffic traffic{0, 0};
  for (int row = 0; row < holds.rows(); ++row) {
    if (sends(me, row)) traffic.out += row_bytes;
    if (sends(1 - me, row)) traffic.in += row_bytes;
  }
  return traffic;
}

void exchange(int fd, const char* out, char* in, Traffic traffic) {
  std::size_t sent = 0, got = 0;
  while (sent < traffic.out || got < traffic.in) {
    if (sent < traffic.out) {
      const ssize_t k = send(fd, out + sent, traffic.out - sent, MSG_NOSIGNAL);
      if (k > 0) sent += static_cast<std::size_t>(k);
      if (k < 0 && errno != EAGAIN && errno != EINTR) _exit(1);
    }
    if (got < traffic.in) {
      const ssize_t k = recv(fd, in + got, traffic.in - got, 0);
      if (k > 0) got += static_cast<std::size_t>(k);
      if (k == 0 || (k < 0 && errno != EAGAIN && errno != EINTR)) _exit(1);
    }
  }
}

class TcpLoops final : public LimitLoops {
 public:
  TcpLoops(Collective collective, std::size_t max_bytes)
      : collective_(collective), out_(std::max<std::size_t>(max_bytes, 1), 1), in_(out_.size()) {
    const int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    auto* address = reinterpret_cast<sockaddr*>(&at);
    socklen_t length = sizeof at;
    fds_[1] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    // The backlog completes the connection, so one process can hold both ends.
    const bool connected = bind(listener, address, length) == 0 && listen(listener, 1) == 0 &&
                           getsockname(listener, address, &length) == 0 && connect(fds_[1], address, length) == 0;
    fds_[0] = connected ? accept4(listener, nullptr, nullptr, SOCK_CLOEXEC) : -1;
    close(listener);
    if (fds_[0] < 0) throw Error(ErrorCode::system, "measuring the limit: no TCP connection over the loopback");
    const int one = 1;
    for (const int fd : fds_) {
      setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
      fcntl(fd, F_SETFL, O_NONBLOCK);
    }
  }
  ~TcpLoops() override {
    for (const int fd : fds_) close(fd);
  }

  int processes() const override { return 2; }
  bool measures(std::size_t bytes) const override { return bytes > 1 || !traits_of(collective_).has_bytes(); }

  std::size_t calls_for(std::size_t bytes) const override {
    return bytes < 100'000 ? 5000 : bytes < 4'000'000 ? 300 : 20;
  }

  double round(int me, std::size_t bytes, std::size_t calls) override {
    const Traffic traffic = traffic_of(collective_, me, bytes);
    const double start = now_us();
    for (std::size_t call = 0; call < calls; ++call) exchange(fds_[me], out_.data(), in_.data(), traffic);
    double mine = (now_us() - start) / static_cast<double>(calls), theirs = 0;
    exchange(fds_[me], reinterpret_cast<char*>(&mine), reinterpret_cast<char*>(&theirs), {sizeof mine, sizeof theirs});
    return std::max(mine, theirs);
  }

 private:
  Collective collective_;
  int fds_[2] = {-1, -1};  // process i uses fds_[i]
  std::vector<char> out_, in_;
};

}  // namespace

std::unique_ptr<LimitLoops> tcp_loops(Collective collective, std::size_t max_bytes) {
  return std::make_unique<TcpLoops>(collective, max_bytes);
}

}  // namespace tutti::internal::tools
