// The two lanes of a channel, one each way, and the peer behind them.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

#include "transport/shm/lane.h"
#include "transport/shm/peers.h"
#include "transport/shm/segment.h"

namespace tutti::internal::shm {

class LanePair {
 public:
  // Makes the lane that the peer writes to. `own` and `peers` outlive this. ring_bytes: of both lanes' rings.
  LanePair(Segment& own, Peers& peers, std::size_t ring_bytes, std::uint64_t communicator, int rank, int peer);
  ~LanePair();
  LanePair(const LanePair&) = delete;
  LanePair& operator=(const LanePair&) = delete;

  int peer() const { return peer_; }
  Segment& own() const { return own_; }
  Lane& in() const { return *in_; }  // in this rank's segment: the peer writes

  // The peer's end may be made later than this one: looked for again on every use until it is there. Throws
  // ChannelClosed.
  bool connect() { return out_ != nullptr || find_peer(); }
  bool is_connected() const { return out_ != nullptr; }
  // Once connected: the peer's segment, and in it the lane that this rank writes.
  Lane& out() const { return *out_; }
  Segment& theirs() const { return *theirs_; }

  // The peer, once its memory has changed hands: before it writes anything. It may have closed its end by now.
  const Peer* who() const { return who_.get(); }
  bool is_gone() const { return who_ != nullptr && who_->gone.load(std::memory_order_acquire); }

  // Whether [at, at + bytes) of the ring that the peer writes to is backed with memory.
  bool in_ring_has(std::uint64_t at, std::uint64_t bytes) const {
    return at <= ring_bytes_ && bytes <= ring_bytes_ - at && own_.file_has(in_offset_ + kLaneHeadBytes + at, bytes);
  }
  // Of the ring that this rank writes to, [at, at + bytes). May throw Error{system}.
  void claim_out_ring(std::size_t at, std::size_t bytes) const {
    theirs_->claim(out_offset_ + kLaneHeadBytes + at, bytes);
  }

  // The owner of the memory just written to may be asleep. No fence here: a rank that goes to sleep makes every running
  // peer pass one first (Transport::before_sleep), which keeps this path free of a full fence a message.
  void notify() const {
    std::atomic_signal_fence(std::memory_order_seq_cst);
    if (theirs_->header().sleeping.load(std::memory_order_relaxed) != 0) who_->ring();
  }

  // Tells the peer that nothing this rank has lent may be touched any more. True once the peer has heard.
  bool withdraw();
  void throw_if_withdrawn() const {
    if (in_->withdrawn.load(std::memory_order_relaxed) != 0) throw_withdrawn();
  }
  [[noreturn]] void throw_gone() const;
  [[noreturn]] void throw_makes_no_sense(const char* what) const;

 private:
  bool find_peer();
  [[noreturn]] void throw_withdrawn() const;

  Segment& own_;
  Peers& peers_;
  const std::size_t ring_bytes_;
  const std::uint64_t communicator_;
  const int rank_, peer_;
  std::uint64_t in_offset_, out_offset_ = 0;
  Lane* in_;
  Lane* out_ = nullptr;  // null until the peer's end has been found
  std::shared_ptr<Peer> who_;
  Segment* theirs_ = nullptr;                  // null until the exchange with the peer is done
  std::optional<std::uint64_t> withdrawn_in_;  // the peer's turn
};

// [at, at + bytes) of the peer's symmetric memory, where it wants a message. Throws ChannelClosed if that is elsewhere.
std::byte* posted_at(const LanePair& lanes, std::uint64_t at, std::size_t bytes);

}  // namespace tutti::internal::shm
