#include "transport/connection.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <limits>
#include <map>
#include <stdexcept>

#include "transport/faulty.h"
#include "transport/inproc/transport.h"
#include "transport/pretended_fabric.h"
#include "transport/shm/transport.h"
#include "transport/tcp/transport.h"
#include "transport/verbs/device.h"
#include "transport/verbs/transport.h"
#include "tutti/error.h"

namespace tutti {
namespace {

class InprocConnection final : public Connection {
 public:
  std::unique_ptr<Channel> open(int side, std::uint64_t communicator) override {
    return transports_[side].channel(communicator, side, 1 - side);
  }
  Transport& transport(int side) override { return transports_[side]; }
  Sleeper& sleeper(int side) override { return sleepers_[side]; }

 private:
  Sleeper sleepers_[2];
  std::shared_ptr<inproc::Hub> hub_ = std::make_shared<inproc::Hub>();
  inproc::Transport transports_[2] = {{hub_, sleepers_[0]}, {hub_, sleepers_[1]}};
};

// A connected pair over the loopback, non-blocking.
std::array<int, 2> connected_sockets() {
  const auto check = [](bool good) {
    if (!good) throw std::runtime_error("no TCP over the loopback here");
  };
  const int listener = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in at{};
  at.sin_family = AF_INET;
  at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof at;
  check(bind(listener, reinterpret_cast<sockaddr*>(&at), length) == 0 && listen(listener, 1) == 0);
  getsockname(listener, reinterpret_cast<sockaddr*>(&at), &length);
  const int first = socket(AF_INET, SOCK_STREAM, 0);
  check(connect(first, reinterpret_cast<sockaddr*>(&at), length) == 0);
  const int second = accept(listener, nullptr, nullptr);
  check(second >= 0);
  close(listener);
  fcntl(first, F_SETFL, O_NONBLOCK);
  fcntl(second, F_SETFL, O_NONBLOCK);
  return {first, second};
}

class TcpConnection final : public Connection {
 public:
  // Connects when the second end opens, so the first starts without a connection.
  std::unique_ptr<Channel> open(int side, std::uint64_t communicator) override {
    auto channel = transports_[side].channel(communicator, side, 1 - side);
    if (++ends_[communicator] == 2) {
      const std::array<int, 2> sockets = connected_sockets();
      for (const int end : {0, 1}) transports_[end].attach(communicator, 1 - end, sockets[end]);
    }
    return channel;
  }
  Transport& transport(int side) override { return transports_[side]; }
  Sleeper& sleeper(int side) override { return sleepers_[side]; }

 private:
  Sleeper sleepers_[2];
  tcp::Transport transports_[2] = {tcp::Transport(sleepers_[0]), tcp::Transport(sleepers_[1])};
  std::map<std::uint64_t, int> ends_;
};

class ShmConnection final : public Connection {
 public:
  ShmConnection() {
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends) != 0)
      throw std::runtime_error("no Unix sockets here");
    for (const int side : {0, 1}) transports_[side].attach(1 - side, ends[side]);
  }
  std::unique_ptr<Channel> open(int side, std::uint64_t communicator) override {
    return transports_[side].channel(communicator, side, 1 - side);
  }
  Transport& transport(int side) override { return transports_[side]; }
  Sleeper& sleeper(int side) override { return sleepers_[side]; }

 private:
  Sleeper sleepers_[2];
  shm::Transport transports_[2] = {shm::Transport(sleepers_[0]), shm::Transport(sleepers_[1])};
};

// Verbs over a pretended device, and with all of this process's memory registered; or over this machine's.
enum class Verbs : std::uint8_t { pretended, registered, device };

template <Verbs kKind>
class VerbsConnection : public Connection {
 public:
  VerbsConnection() {
    for (const int side : {0, 1})
      if (kKind == Verbs::registered)
        everything_[side] = transports_[side].registry().add(nullptr, std::size_t{1} << 47);
  }
  std::unique_ptr<Channel> open(int side, std::uint64_t communicator) override {
    auto channel = transports_[side].channel(communicator, side, 1 - side);
    Channel*& first = first_[communicator];
    if (first != nullptr) {
      const std::array<int, 2> sockets = connected_sockets();
      for (const int end : {0, 1}) transports_[end].attach(communicator, 1 - end, sockets[end]);
      for (int step = 0; step < 4; ++step) first->progress(), channel->progress();  // they join, if sockets are quick
    }
    first = channel.get();
    return channel;
  }
  Transport& transport(int side) override { return transports_[side]; }
  Sleeper& sleeper(int side) override { return sleepers_[side]; }

 private:
  std::shared_ptr<verbs::Fabric> fabric() {
    return kKind == Verbs::device ? verbs::open_device({}, -1) : make_pretended_fabric(network_);
  }

  const std::shared_ptr<PretendedNetwork> network_ = make_pretended_network();
  Sleeper sleepers_[2];
  verbs::Transport transports_[2] = {{sleepers_[0], fabric()}, {sleepers_[1], fabric()}};
  std::shared_ptr<void> everything_[2];
  std::map<std::uint64_t, Channel*> first_;  // of a communicator, to be opened
};

// Another connection whose transports misbehave as far as the contract allows.
template <class Inner>
class FaultyConnection final : public Connection {
 public:
  std::unique_ptr<Channel> open(int side, std::uint64_t communicator) override {
    // The wrapped channel first: what opens it may do more than ask the transport for it.
    return wrappers_[side].wrap(inner_.open(side, communicator), communicator, side, 1 - side);
  }
  Transport& transport(int side) override { return wrappers_[side]; }
  Sleeper& sleeper(int side) override { return inner_.sleeper(side); }

 private:
  static constexpr Faults faults(std::uint64_t seed) {
    return {.seed = seed,
            .delay_calls = 5,
            .short_view_percent = 50,
            .idle_progress_percent = 30,
            .refuse_reserve_percent = 50};
  }
  Inner inner_;
  FaultyTransport wrappers_[2] = {{inner_.transport(0), faults(1)}, {inner_.transport(1), faults(2)}};
};

template <class T>
std::unique_ptr<Connection> make() {
  return std::make_unique<T>();
}

}  // namespace

std::vector<ConnectionKind> all_connections() {
  std::vector<ConnectionKind> all = {
      {.name = "inproc", .make = make<InprocConnection>},
      {.name = "tcp", .make = make<TcpConnection>},
      {.name = "shm", .make = make<ShmConnection>, .notices_close = false},
      {.name = "verbs", .make = make<VerbsConnection<Verbs::pretended>>},
      {.name = "verbs_registered", .make = make<VerbsConnection<Verbs::registered>>},
      {.name = "faulty_verbs", .make = make<FaultyConnection<VerbsConnection<Verbs::registered>>>, .quick = false},
      {.name = "faulty_shm", .make = make<FaultyConnection<ShmConnection>>, .notices_close = false, .quick = false},
      {.name = "faulty_inproc", .make = make<FaultyConnection<InprocConnection>>, .quick = false},
      {.name = "faulty_tcp", .make = make<FaultyConnection<TcpConnection>>, .quick = false},
  };
  try {
    verbs::try_out(*verbs::open_device({}, -1), 2);
    all.push_back({.name = "verbs_device", .make = make<VerbsConnection<Verbs::device>>});
    all.push_back({.name = "faulty_verbs_device",
                   .make = make<FaultyConnection<VerbsConnection<Verbs::device>>>,
                   .quick = false});
  } catch (const Error&) {  // there is none, or none that can be used
  }
  return all;
}

}  // namespace tutti
