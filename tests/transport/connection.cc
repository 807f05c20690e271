#include "transport/connection.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <map>
#include <stdexcept>

#include "base/log.h"
#include "transport/connector.h"
#include "transport/fake_fabric.h"
#include "transport/faulty.h"
#include "transport/inproc/transport.h"
#include "transport/registry.h"
#include "transport/unix_socket/connector.h"
#include "transport/verbs/device.h"
#include "transport/verbs/transport.h"
#include "tutti/error.h"

namespace tutti::internal {
namespace {

const bool kRegistered = (register_transport({"unix_socket", unix_socket::make_connector}), true);

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

std::array<int, 2> connected_unix_sockets() {
  std::array<int, 2> ends{};
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends.data()) != 0)
    throw std::runtime_error("no Unix sockets here");
  return ends;
}

// Two ranks of one host that joined by a kind of transport that is registered.
class JoinedConnection final : public Connection {
 public:
  explicit JoinedConnection(const TransportKind& kind) {
    for (const int side : {0, 1}) {
      connectors_[side] = kind.make({settings_, log_, sleepers_[side]});
      if (const std::string why = connectors_[side]->probe(true, 2); !why.empty()) throw std::runtime_error(why);
      transports_[side] = &connectors_[side]->begin({.own = side, .host = {0, 0}});
    }
    if (!per_communicator()) connect(0);
  }
  bool per_communicator() const { return connectors_[0]->route()->per_communicator; }

  // Connects when the second end opens, so the first starts without a connection.
  std::unique_ptr<Channel> open(int side, std::uint64_t communicator) override {
    auto channel = transports_[side]->channel(communicator, side, 1 - side);
    if (!per_communicator()) return channel;
    Channel*& first = first_[communicator];
    if (first != nullptr) {
      connect(communicator);
      for (int step = 0; step < 4; ++step) first->progress(), channel->progress();  // verbs: each greets the other
    }
    first = channel.get();
    return channel;
  }
  Transport& transport(int side) override { return *transports_[side]; }
  Sleeper& sleeper(int side) override { return sleepers_[side]; }

 private:
  void connect(std::uint64_t communicator) {
    const std::array<int, 2> sockets =
        connectors_[0]->route()->path == Path::local ? connected_unix_sockets() : connected_sockets();
    for (const int side : {0, 1}) connectors_[side]->attach(communicator, 1 - side, sockets[side]);
  }

  const Settings settings_;
  const internal::Log log_{settings_};
  Sleeper sleepers_[2];
  std::unique_ptr<Connector> connectors_[2];
  Transport* transports_[2];
  std::map<std::uint64_t, Channel*> first_;  // of a communicator, to be opened
};

// Verbs over a fake device, and with all of this process's memory registered.
enum class Verbs : std::uint8_t { fake, registered };

template <Verbs kKind>
class VerbsConnection final : public Connection {
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
  const std::shared_ptr<FakeNetwork> network_ = make_fake_network();
  Sleeper sleepers_[2];
  verbs::Transport transports_[2] = {{sleepers_[0], make_fake_fabric(network_)},
                                     {sleepers_[1], make_fake_fabric(network_)}};
  std::shared_ptr<void> everything_[2];
  std::map<std::uint64_t, Channel*> first_;  // of a communicator, to be opened
};

// A connection whose transports misbehave as far as the contract allows.
class FaultyConnection final : public Connection {
 public:
  explicit FaultyConnection(std::unique_ptr<Connection> inner) : inner_(std::move(inner)) {}
  std::unique_ptr<Channel> open(int side, std::uint64_t communicator) override {
    // The wrapped channel first: what opens it may do more than ask the transport for it.
    return wrappers_[side].wrap(inner_->open(side, communicator), communicator, side, 1 - side);
  }
  Transport& transport(int side) override { return wrappers_[side]; }
  Sleeper& sleeper(int side) override { return inner_->sleeper(side); }

 private:
  static constexpr Faults faults(std::uint64_t seed) {
    return {.seed = seed,
            .delay_calls = 5,
            .short_view_percent = 50,
            .idle_progress_percent = 30,
            .refuse_reserve_percent = 50};
  }
  const std::unique_ptr<Connection> inner_;
  FaultyTransport wrappers_[2] = {{inner_->transport(0), faults(1)}, {inner_->transport(1), faults(2)}};
};

bool has_device() try {
  verbs::try_out(*verbs::open_device({}, -1), 2);
  return true;
} catch (const Error&) {
  return false;
}

template <class T>
ConnectionKind kind(const std::string& name) {
  return {.name = name, .make = [] { return std::make_unique<T>(); }};
}

}  // namespace

std::vector<ConnectionKind> all_connections() {
  std::vector<ConnectionKind> all = {kind<InprocConnection>("inproc"), kind<VerbsConnection<Verbs::fake>>("verbs_fake"),
                                     kind<VerbsConnection<Verbs::registered>>("verbs_registered")};
  for (const TransportKind& kind : transport_kinds()) {
    if (kind.name == "verbs" && !has_device()) continue;
    // A rank notices that a peer's channel has closed where that has a connection of its own.
    const bool notices_close = JoinedConnection(kind).per_communicator();
    all.push_back({.name = std::string(kind.name),
                   .make = [kind] { return std::make_unique<JoinedConnection>(kind); },
                   .notices_close = notices_close});
  }
  for (std::size_t i = 0, count = all.size(); i < count; ++i) {
    const ConnectionKind inner = all[i];
    if (inner.name == "verbs_fake" || inner.name == "unix_socket") continue;  // their likes show as much
    all.push_back({.name = "faulty_" + inner.name,
                   .make = [make = inner.make] { return std::make_unique<FaultyConnection>(make()); },
                   .notices_close = inner.notices_close,
                   .quick = false});
  }
  return all;
}

}  // namespace tutti::internal
