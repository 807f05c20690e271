// Shared memory between the ranks of one host.
#pragma once

#include <atomic>
#include <memory>
#include <string>

#include "transport/shm/adoption.h"
#include "transport/shm/peers.h"
#include "transport/shm/retired.h"
#include "transport/shm/ring_bytes.h"
#include "transport/shm/segment.h"
#include "transport/sleeper.h"
#include "transport/transport.h"

namespace tutti::internal::shm {

// One rank's end. Ranks are the job's. Channels may be made before their peer has been attached.
class Transport final : public internal::Transport {
 public:
  explicit Transport(Sleeper& sleeper, RingBytes ring_bytes = {kMinRingBytes, kMinRingBytes});

  std::string_view name() const override { return "shm"; }
  std::unique_ptr<internal::Channel> channel(std::uint64_t communicator, int rank, int peer) override;
  void before_sleep() override;
  void after_sleep() override;
  bool has_turns() const override { return true; }
  void begin_turn() override {
    Turn& turn = own_->header().turn;
    if (others_make_barriers_)
      turn.begin();
    else
      turn.begin_with_barrier();
  }
  void end_turn() override { own_->header().turn.end(); }

  // Starts the exchange of memory and bells with `peer` over a connected, authenticated Unix socket, and takes the fd.
  // find() finishes it. Or: there will be no connection, and why. Thread-safe; neither blocks.
  void attach(int peer, int fd) { peers_.attach(peer, fd); }
  void fail(int peer, const std::string& why) { peers_.fail(peer, why); }

  // nullptr until the exchange is done. Throws ChannelClosed if there was no connection or the peer closed it, Error if
  // the peer gave something else.
  std::shared_ptr<Peer> find(int peer) { return peers_.find(peer); }

  std::shared_ptr<std::byte> allocate(std::size_t bytes) override;
  bool shares(const std::byte* data, std::size_t bytes) override {
    Place place;
    return own_->holds(data, bytes, place);
  }
  void keep_memory() override { own_->keep_all(true); }
  std::shared_ptr<void> adopt(std::byte* data, std::size_t bytes) override { return shm::adopt(own_, data, bytes); }
  void look_at_peers() override { peers_.look(); }

  Segment& own() { return *own_; }
  const Retired& retired() const { return retired_; }

 private:
  const RingBytes ring_bytes_;
  const std::shared_ptr<Segment> own_;
  const bool others_make_barriers_;  // for this rank's threads to pass
  Peers peers_;
  Retired retired_{*own_};
};

}  // namespace tutti::internal::shm
