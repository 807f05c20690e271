#include "transport/shm/lane_pair.h"

#include "transport/shm/barrier.h"
#include "transport/transport.h"

namespace tutti::internal::shm {

LanePair::LanePair(Segment& own, Peers& peers, std::size_t ring_bytes, std::uint64_t communicator, int rank, int peer)
    : own_(own),
      peers_(peers),
      ring_bytes_(ring_bytes),
      communicator_(communicator),
      rank_(rank),
      peer_(peer),
      in_offset_(own.add_lane(communicator, peer, lane_bytes(ring_bytes), kLaneHeadBytes)),
      in_(reinterpret_cast<Lane*>(own.at(in_offset_))) {
  in_->ack.store(kFirstLine, std::memory_order_relaxed);  // the peer writes there once it has consumed lines of mine
}

LanePair::~LanePair() { own_.remove_lane(communicator_, peer_, lane_bytes(ring_bytes_)); }

bool LanePair::find_peer() {
  if (who_ == nullptr) who_ = peers_.find(peer_);
  if (who_ == nullptr) return false;
  theirs_ = who_->segment.get();
  out_offset_ = theirs_->find_lane(communicator_, rank_);
  if (out_offset_ == 0) return false;
  const std::size_t bytes = lane_bytes(ring_bytes_);
  const bool fits = out_offset_ % kPageBytes == 0 && out_offset_ % kSlotBytes + bytes <= kSlotBytes &&
                    out_offset_ + bytes <= kSymmetricOffset;
  std::byte* const lane = fits ? theirs_->at(out_offset_, kLaneHeadBytes) : nullptr;
  if (lane == nullptr) throw_makes_no_sense("it has its lane outside of its memory");
  out_ = reinterpret_cast<Lane*>(lane);
  out_->reads.store(who_->memory.can_be_read() && reading_is_quick() ? 1 : 0, std::memory_order_relaxed);
  out_->writes.store(who_->memory.can_be_written() ? 1 : 0, std::memory_order_relaxed);
  return true;
}

bool LanePair::withdraw() {
  if (out_ == nullptr) return true;
  const Turn& turn = theirs_->header().turn;
  if (!withdrawn_in_) {
    out_->withdrawn.store(1, std::memory_order_relaxed);
    barrier_everywhere();
    withdrawn_in_ = turn.count();
  }
  if (turn.is_over(*withdrawn_in_)) return true;
  who_->look();
  return who_->gone.load(std::memory_order_relaxed);
}

void LanePair::throw_gone() const { throw ChannelClosed{peer_, "its end of the shared memory is closed"}; }

void LanePair::throw_withdrawn() const { throw ChannelClosed{peer_, "it gave the call up and took its memory back"}; }

void LanePair::throw_makes_no_sense(const char* what) const { throw ChannelClosed{peer_, what}; }

std::byte* posted_at(const LanePair& lanes, std::uint64_t at, std::size_t bytes) {
  std::byte* const found = at < kSymmetricOffset ? nullptr : lanes.theirs().at(at, bytes);
  if (found == nullptr) lanes.throw_makes_no_sense("it wants a message outside of its symmetric memory");
  return found;
}

}  // namespace tutti::internal::shm
