// Two ends of a verbs channel over a fake network, with the limits that a test wants, and the sockets and the
// devices in its hands.
#pragma once

#include <sys/socket.h>
#include <unistd.h>

#include <memory>
#include <utility>
#include <vector>

#include "transport/conformance.h"
#include "transport/fake_fabric.h"
#include "transport/verbs/layout.h"
#include "transport/verbs/transport.h"

namespace tutti::internal {

class VerbsEnds {
 public:
  static constexpr std::uint64_t kCommunicator = 7;

  explicit VerbsEnds(const FakeLimits& limits = {}) : VerbsEnds(limits, limits) {}
  VerbsEnds(const FakeLimits& first, const FakeLimits& second)
      : fabrics_{make_fake_fabric(network_, first), make_fake_fabric(network_, second)} {
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, sockets_) != 0) throw std::runtime_error("socketpair");
    for (const int side : {0, 1}) open(side);
  }
  ~VerbsEnds() {
    for (const int side : {0, 1}) hang_up(side);
  }
  VerbsEnds(const VerbsEnds&) = delete;
  VerbsEnds& operator=(const VerbsEnds&) = delete;

  Channel& operator[](int side) { return *channels_[side]; }
  verbs::Transport& transport(int side) { return *transports_[side]; }
  verbs::Fabric& fabric(int side) { return *fabrics_[side]; }
  FakeNetwork& network() { return *network_; }

  // Before the end is joined: it goes by `fabric`.
  void use(int side, std::shared_ptr<verbs::Fabric> fabric) {
    channels_[side].reset();
    transports_[side].reset();
    fabrics_[side] = std::move(fabric);
    open(side);
  }
  std::shared_ptr<verbs::Fabric> shared_fabric(int side) { return fabrics_[side]; }

  // A side's end of the socket, until it is attached.
  int socket(int side) const { return sockets_[side]; }
  void hang_up(int side) {
    if (sockets_[side] >= 0) close(std::exchange(sockets_[side], -1));
  }
  void attach(int side) { transports_[side]->attach(kCommunicator, 1 - side, std::exchange(sockets_[side], -1)); }
  void join() {
    for (const int side : {0, 1}) attach(side);
    for (int step = 0; step < 4; ++step)
      for (const int side : {0, 1}) channels_[side]->progress();
  }
  void leave(int side) { channels_[side].reset(); }

  [[nodiscard]] std::shared_ptr<void> add(int side, Bytes& memory) {
    return memory.empty() ? nullptr : transports_[side]->registry().add(memory.data(), memory.size());
  }
  void send(int side, std::uint64_t message, const Bytes& data) { send(side, tag_of(message), data); }
  void send(int side, const Tag& tag, const Bytes& data) { channels_[side]->send(tag, data.data(), data.size()); }
  void receive(int side, std::uint64_t message, Bytes& data) {
    channels_[side]->receive(message, tag_of(message), data.data(), data.size());
  }
  void wait(const std::function<bool()>& done) { wait_until({channels_[0].get(), channels_[1].get()}, done); }

  // All of a message through views.
  Bytes look(int side, std::uint64_t message, std::size_t bytes) {
    Bytes seen;
    do {
      std::span<const std::byte> here;
      wait([&] { return channels_[side]->view(tag_of(message), bytes, here); });
      seen.insert(seen.end(), here.begin(), here.end());
      channels_[side]->release(here.size());
    } while (seen.size() < bytes);
    return seen;
  }

  // What a side that waits says of its peer; "" while it says nothing.
  std::string complaint(int side, int turns = 20'000) {
    try {
      for (int turn = 0; turn < turns; ++turn) channels_[side]->progress();
    } catch (const ChannelClosed& closed) {
      EXPECT_EQ(closed.peer, 1 - side);
      EXPECT_THROW(channels_[side]->progress(), ChannelClosed) << "it stays closed";
      return closed.why;
    }
    return "";
  }

 private:
  void open(int side) {
    transports_[side] = std::make_unique<verbs::Transport>(sleepers_[side], fabrics_[side]);
    channels_[side] = transports_[side]->channel(kCommunicator, side, 1 - side);
  }

  const std::shared_ptr<FakeNetwork> network_ = make_fake_network();
  std::shared_ptr<verbs::Fabric> fabrics_[2];
  Sleeper sleepers_[2];
  std::unique_ptr<verbs::Transport> transports_[2];
  std::unique_ptr<Channel> channels_[2];
  int sockets_[2] = {-1, -1};
};

}  // namespace tutti::internal
