// Shared memory between the ranks of one host.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "transport/shm/lane.h"
#include "transport/shm/segment.h"
#include "transport/sleeper.h"
#include "transport/transport.h"

namespace tutti::shm {

// A peer as a rank sees it: its memory, the bell that wakes it, and whether it is there.
struct Peer {
  std::shared_ptr<Segment> segment;
  int bell = -1;    // owned eventfd
  int socket = -1;  // owned: nothing more comes over it; the peer's end closes when it leaves or dies
  std::atomic<bool> gone{false};
  ~Peer();
  void look();  // whether it has gone
};

// Returns once every thread of every rank of this machine has passed a full memory barrier.
void barrier_everywhere();

// One rank's end. Ranks are the job's. Channels may be made before their peer has been attached.
class Transport final : public tutti::Transport {
 public:
  explicit Transport(Sleeper& sleeper, std::size_t ring_bytes = kLeastRingBytes);
  ~Transport() override;

  std::string_view name() const override { return "shm"; }
  std::unique_ptr<tutti::Channel> channel(std::uint64_t communicator, int rank, int peer) override;
  void before_sleep() override;
  void after_sleep() override;
  bool has_turns() const override { return true; }
  void begin_turn() override {
    own_->header().turn.begin();
    if (!others_make_barriers_) std::atomic_thread_fence(std::memory_order_seq_cst);
  }
  void end_turn() override { own_->header().turn.end(); }

  // Starts the exchange of memory and bells with `peer` over a connected, authenticated Unix socket, and takes the fd.
  // find() finishes it. Or: there will be no connection, and why. Thread-safe; neither blocks.
  void attach(int peer, int fd);
  void fail(int peer, const std::string& why);

  // nullptr until the exchange is done. Throws ChannelClosed if there was no connection or the peer closed it, Error if
  // the peer gave something else.
  std::shared_ptr<Peer> find(int peer);

  std::shared_ptr<std::byte> allocate(std::size_t bytes) override;
  void keep_memory() override { own_->keep_all(); }
  void look_at_peers() override;

  std::size_t ring_bytes() const { return ring_bytes_; }
  Segment& own() { return *own_; }
  // Whether [data, data + bytes) is symmetric memory of this rank, and then its offset in the segment.
  bool is_symmetric(const void* data, std::size_t bytes, std::uint64_t& offset) const;

 private:
  Sleeper& sleeper_;
  const std::size_t ring_bytes_;
  std::shared_ptr<Segment> own_;
  bool others_make_barriers_;  // for this rank's threads to pass
  std::mutex mutex_;
  std::map<int, int> exchanging_;  // peer -> fd
  std::map<int, std::shared_ptr<Peer>> peers_;
  std::map<int, std::string> failed_;
};

// --- handover.cc: the exchange itself
// Sends this rank's descriptors. False, with errno, where it cannot.
bool give(int fd, const Segment& own, int bell);
// Takes the peer's; nullptr while nothing has come. A thread of the same process shares the peer's mapping.
std::shared_ptr<Peer> take(int fd, int peer);

}  // namespace tutti::shm
