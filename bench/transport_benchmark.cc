// Two processes exchange messages over a channel, both ways at once: what a transport costs before any schedule. The
// pattern and the statistic are those of a bare loop of send() and recv() over the same connection, which it runs
// beside the channel.
//   transport_benchmark [MIN MAX FACTOR]   ->  bytes, and microseconds: bare, received into place, viewed
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <vector>

#include "transport/tcp/transport.h"

namespace {

using tutti::internal::Channel;
using tutti::internal::Tag;

double now_us() {
  return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

void exchange_bare(int fd, const std::byte* out, std::byte* in, std::size_t bytes) {
  for (std::size_t sent = 0, got = 0; sent < bytes || got < bytes;) {
    if (sent < bytes)
      sent += static_cast<std::size_t>(std::max<ssize_t>(0, send(fd, out + sent, bytes - sent, MSG_NOSIGNAL)));
    if (got < bytes) got += static_cast<std::size_t>(std::max<ssize_t>(0, recv(fd, in + got, bytes - got, 0)));
  }
}

// One rank's end of the benchmark: counts what has gone through its channel.
class Rank {
 public:
  Rank(Channel& channel, std::size_t most) : out(most, std::byte{1}), in(most), channel_(channel) {}

  void exchange(std::size_t bytes) {
    channel_.receive(arrived_++, Tag{}, in.data(), bytes);
    channel_.send(Tag{}, out.data(), bytes);
    ++sent_, ++received_;
    while (channel_.received() < received_ || channel_.sent() < sent_) channel_.progress();
  }
  void exchange_viewing(std::size_t bytes) {
    channel_.send(Tag{}, out.data(), bytes);
    ++sent_;
    for (std::size_t seen = 0; seen < bytes;) {
      std::span<const std::byte> here;
      if (channel_.view(Tag{}, bytes, here)) {
        seen += here.size();
        channel_.release(here.size());
      }
      channel_.progress();
    }
    ++arrived_;
    while (channel_.sent() < sent_) channel_.progress();
  }

  std::vector<std::byte> out, in;

 private:
  Channel& channel_;
  std::uint64_t sent_ = 0, received_ = 0, arrived_ = 0;
};

// Calls back to back, mean per call, slower side, median of 5 rounds.
double measure(int fd, int calls, const std::function<void()>& call) {
  std::vector<double> rounds;
  for (int round = -1; round < 5; ++round) {
    const double start = now_us();
    for (int i = 0; i < calls; ++i) call();
    double mine = (now_us() - start) / calls, theirs = 0;
    exchange_bare(fd, reinterpret_cast<std::byte*>(&mine), reinterpret_cast<std::byte*>(&theirs), sizeof mine);
    if (round >= 0) rounds.push_back(std::max(mine, theirs));
  }
  std::nth_element(rounds.begin(), rounds.begin() + 2, rounds.end());
  return rounds[2];
}

// A connected, non-blocking socket: rank 0 accepts, rank 1 connects.
int connection(int rank, int listener, const sockaddr_in& at) {
  int fd;
  if (rank == 0) {
    fd = accept(listener, nullptr, nullptr);
  } else {
    fd = socket(AF_INET, SOCK_STREAM, 0);
    if (connect(fd, reinterpret_cast<const sockaddr*>(&at), sizeof at) != 0) fd = -1;
  }
  if (fd < 0) std::perror("connect"), std::exit(1);
  const int one = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
  fcntl(fd, F_SETFL, O_NONBLOCK);
  return fd;
}

void run(int rank, int listener, const sockaddr_in& at, std::size_t min, std::size_t max, std::size_t factor) {
  cpu_set_t cpu;
  CPU_ZERO(&cpu);
  CPU_SET(rank % sysconf(_SC_NPROCESSORS_ONLN), &cpu);
  sched_setaffinity(0, sizeof cpu, &cpu);
  const int bare = connection(rank, listener, at);
  tutti::internal::Sleeper sleeper;
  tutti::internal::tcp::Transport transport(sleeper);
  transport.attach(1, 1 - rank, connection(rank, listener, at));
  const auto channel = transport.channel(1, rank, 1 - rank);
  Rank me(*channel, max);
  if (rank == 0) std::printf("%12s %12s %12s %12s\n", "bytes", "bare us", "receive us", "view us");
  for (std::size_t bytes = min; bytes <= max; bytes *= factor) {
    const int calls = bytes < 100'000 ? 5000 : bytes < 4'000'000 ? 300 : 20;
    const double limit = measure(bare, calls, [&] { exchange_bare(bare, me.out.data(), me.in.data(), bytes); });
    const double received = measure(bare, calls, [&] { me.exchange(bytes); });
    const double viewed = measure(bare, calls, [&] { me.exchange_viewing(bytes); });
    if (rank == 0) std::printf("%12zu %12.2f %12.2f %12.2f\n", bytes, limit, received, viewed), std::fflush(stdout);
  }
  close(bare);
}

}  // namespace

int main(int argc, char** argv) {
  const auto argument = [&](int i, std::size_t otherwise) {
    return argc > i ? static_cast<std::size_t>(std::strtoull(argv[i], nullptr, 0)) : otherwise;
  };
  sockaddr_in at{};
  at.sin_family = AF_INET;
  at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof at;
  const int listener = socket(AF_INET, SOCK_STREAM, 0);
  if (bind(listener, reinterpret_cast<sockaddr*>(&at), length) || listen(listener, 2)) return std::perror("listen"), 1;
  getsockname(listener, reinterpret_cast<sockaddr*>(&at), &length);
  const pid_t child = fork();
  run(child == 0 ? 1 : 0, listener, at, argument(1, 8), argument(2, 16 << 20),
      std::max<std::size_t>(2, argument(3, 8)));
  if (child == 0) return 0;
  int status = 1;
  wait(&status);
  return status == 0 ? 0 : 1;
}
