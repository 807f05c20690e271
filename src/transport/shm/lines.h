// The lines of a channel's two lanes, in order. This rank writes lines of one lane and consumes those of the other;
// each line that it writes acknowledges what it has consumed by then, and takes a post along. An acknowledgement goes
// alone where the peer may wait for it (flush).
#pragma once

#include <cstdint>

#include "transport/shm/lane.h"
#include "transport/shm/lane_pair.h"
#include "transport/shm/posts.h"
#include "types/tag.h"

namespace tutti::internal::shm {

// What a channel's sender and receiver share.
class Lines {
 public:
  Lines(Segment& own, Peers& peers, std::size_t ring_bytes, std::uint64_t communicator, int rank, int peer)
      : lanes_(own, peers, ring_bytes, communicator, rank, peer) {}

  LanePair& lanes() { return lanes_; }
  const LanePair& lanes() const { return lanes_; }
  Posts& posts() { return posts_; }

  // --- writing: once connected (LanePair::connect)
  std::uint32_t written() const { return written_; }  // the number of the next line
  std::uint32_t acked() const { return acked_; }      // lines below this number have been consumed by the peer
  bool has_room() {
    if (written_ - acked_ >= kLines) refresh_acked();
    return written_ - acked_ < kLines;
  }
  Line& next() { return lanes_.out().lines[written_ % kLines]; }
  // Publishes next(), which holds its payload, or where that lies, by now.
  void announce(Line& line, const Tag& tag, LineKind kind, std::uint64_t total);
  // Looks what the peer has consumed: in Lane::ack, and on lines that nobody here has asked for yet.
  void refresh_acked();

  // --- reading
  // The first line that has not been consumed, nullptr while it has not come.
  const Line* arrived();
  std::uint32_t consumed() const { return consumed_; }  // the number of the first line
  const Line& first() const { return lanes_.in().lines[consumed_ % kLines]; }
  void consume(bool peer_waits) {
    ++consumed_;
    peer_waits_ |= peer_waits;
  }

  // Writes what no line has taken along: a post; an acknowledgement, if the peer waits for one or has few lines left.
  // Once in a long while it goes anyway, so that Lane::ack cannot lag by a whole round of the counter.
  void flush() {
    if (posts_.has_waiting() || owes_ack()) write_owed();
  }

 private:
  static constexpr std::uint32_t kMaxLag = 1u << 30;  // lines

  // A number outside the window of lines not yet acknowledged is old: Lane::ack may lag far behind the stamps.
  void read_ack(std::uint32_t ack) {
    const std::uint32_t ahead = ack - acked_;
    if (ahead <= written_ - acked_) acked_ = ack;
  }
  void note(const Line& line, std::uint32_t number);
  bool owes_ack() const {
    return peer_waits_ || consumed_ - acknowledged_ >= kLines / 4 || consumed_ - acknowledged_alone_ >= kMaxLag;
  }
  void write_owed();

  LanePair lanes_;
  std::uint32_t written_ = kFirstLine;
  std::uint32_t acked_ = kFirstLine;  // of those, consumed by the peer
  std::uint32_t consumed_ = kFirstLine;
  std::uint32_t acknowledged_ = kFirstLine;        // of those, told to the peer
  std::uint32_t acknowledged_alone_ = kFirstLine;  // of those, told by Lane::ack
  std::uint32_t noted_ = kFirstLine;               // lines looked at for posts
  bool peer_waits_ = false;                        // a lent message is among those not yet told
  Posts posts_;
};

inline void Lines::announce(Line& line, const Tag& tag, LineKind kind, std::uint64_t total) {
  line.tag[0] = tag.word[0];
  line.tag[1] = tag.word[1];
  line.kind_and_total.store((static_cast<std::uint64_t>(kind) << 48) | total, std::memory_order_relaxed);
  if (kind != LineKind::inside) line.post = posts_.has_waiting() ? posts_.take_along(tag) : PostedAt{};
  const std::uint32_t consumed = consumed_, written = written_ + 1;
  line.stamp.store((static_cast<std::uint64_t>(consumed) << 32) | written, std::memory_order_release);
  written_ = written;
  acknowledged_ = consumed;
  peer_waits_ = false;
  lanes_.notify();
}

inline const Line* Lines::arrived() {
  const Line& line = first();
  const std::uint32_t number = consumed_;
  const std::uint64_t stamp = line.stamp.load(std::memory_order_acquire);
  if (static_cast<std::uint32_t>(stamp) != number + 1) return nullptr;
  read_ack(static_cast<std::uint32_t>(stamp >> 32));
  if (noted_ != number + 1) note(line, number);
  return &line;
}

// The first look at a line that has come.
inline void Lines::note(const Line& line, std::uint32_t number) {
  noted_ = number + 1;
  if (kind_of(line) != LineKind::inside) posts_.heard(line.post);
}

}  // namespace tutti::internal::shm
