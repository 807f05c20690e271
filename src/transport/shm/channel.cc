// What both halves share (sending.cc, receiving.cc).
#include "transport/shm/channel.h"

#include <unistd.h>

namespace tutti::shm {
namespace {

constexpr std::uint32_t kMostLag = 1u << 30;  // lines
constexpr std::size_t kPageBytes = 4096;

}  // namespace

Channel::Channel(Transport& transport, std::uint64_t communicator, int rank, int peer)
    : transport_(transport),
      communicator_(communicator),
      rank_(rank),
      peer_(peer),
      ring_bytes_(transport.ring_bytes()) {
  in_offset_ = transport_.own().add_lane(communicator, peer, sizeof(Lane), kLaneHeadBytes);
  in_ = reinterpret_cast<Lane*>(transport_.own().at(in_offset_));
  in_->ack.store(kFirstLine, std::memory_order_relaxed);  // the peer writes there once it has consumed lines of mine
}

Channel::~Channel() { transport_.own().remove_lane(communicator_, peer_, sizeof(Lane)); }

// The peer's end may be made later than this one: looked for again on every use until it is there.
bool Channel::find_peer() {
  if (who_ == nullptr) who_ = transport_.find(peer_);
  if (who_ == nullptr) return false;
  theirs_ = who_->segment.get();
  out_offset_ = theirs_->find_lane(communicator_, rank_);
  if (out_offset_ == 0) return false;
  const bool fits = out_offset_ % kPageBytes == 0 && out_offset_ % kSlotBytes + sizeof(Lane) <= kSlotBytes &&
                    out_offset_ + sizeof(Lane) <= kSymmetricOffset;
  std::byte* const lane = fits ? theirs_->at(out_offset_, kLaneHeadBytes) : nullptr;
  if (lane == nullptr) throw_makes_no_sense("it has its lane outside of its memory");
  out_ = reinterpret_cast<Lane*>(lane);
  return true;
}

void Channel::ring_bell() const {
  const std::uint64_t one = 1;
  [[maybe_unused]] const auto ignored = ::write(who_->bell, &one, sizeof one);
}

void Channel::throw_gone() const { throw ChannelClosed{peer_, "its end of the shared memory is closed"}; }

void Channel::throw_withdrawn() const { throw ChannelClosed{peer_, "it gave the call up and took its memory back"}; }

void Channel::throw_makes_no_sense(const char* what) const { throw ChannelClosed{peer_, what}; }

bool Channel::progress() {
  bool moved = false;
  while (!outgoing_.empty()) {
    const std::size_t before = outgoing_.front().done;
    const bool whole = push(outgoing_.front());
    moved |= whole || outgoing_.front().done != before;
    if (!whole) break;
    outgoing_.pop();
  }
  return fill() || moved;
}

// Acknowledgements travel with the next line to the peer. Alone they go when the peer waits for one, or when few lines
// are left to it; and once in a long while, so that the word cannot lag by a whole round of the counter.
void Channel::flush() {
  write_waiting_post();
  const bool lags = line_in_ - acknowledged_alone_ >= kMostLag;
  if (!lags && (line_in_ == acknowledged_ || (!peer_waits_ && line_in_ - acknowledged_ < kLines / 4))) return;
  if (!connect()) return;  // it has closed its end, and waits for nothing
  out_->ack.store(line_in_, std::memory_order_release);
  acknowledged_ = acknowledged_alone_ = line_in_;
  peer_waits_ = false;
  notify();
}

bool Channel::withdraw() {
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

bool Channel::unclaimed(Tag& tag) {
  if (!wanted_.empty() || viewing_) return false;
  const Line* line = arrived();
  if (line == nullptr) return false;
  tag = tag_of(line->tag);
  return true;
}

}  // namespace tutti::shm
