// The lines of a channel's two lanes, in order. This rank writes lines of one lane and consumes those of the other;
// each line that it writes acknowledges what it has consumed by then, and takes a post along. An acknowledgement goes
// alone where the peer may wait for it (flush).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "transport/shm/acks.h"
#include "transport/shm/lane.h"
#include "transport/shm/lane_pair.h"
#include "transport/shm/line_place.h"
#include "transport/shm/posts.h"
#include "transport/shm/ring.h"
#include "transport/shm/ring_bytes.h"
#include "types/tag.h"

namespace tutti::internal::shm {

// What a channel's sender and receiver share.
class Lines {
 public:
  Lines(Segment& own, Peers& peers, RingBytes ring_bytes, std::uint64_t communicator, int rank, int peer)
      : communicator_(communicator),
        rank_(rank),
        lanes_(own, peers, ring_bytes.one_way, communicator, rank, peer),
        ring_(ring_bytes),
        acks_(ring_bytes.both_ways) {}

  LanePair& lanes() { return lanes_; }
  const LanePair& lanes() const { return lanes_; }
  Posts& posts() { return posts_; }
  Ring& ring() { return ring_; }
  Acks& acks() { return acks_; }

  // --- writing: once connected (LanePair::connect)
  const Unread& unread() const { return unread_; }  // the lines that the peer has not acknowledged
  bool has_room() {
    if (!to_.is_free(unread_.count())) refresh_acked();
    return to_.is_free(unread_.count());
  }
  Line& next() { return to_.in(lanes_.out()); }
  // Publishes next(), which holds its payload, or where that lies, by now.
  void announce(Line& line, const Tag& tag, LineKind kind, std::uint64_t total);
  // Looks what the peer has acknowledged: in Lane::ack, and on lines that nobody here has asked for yet.
  void refresh_acked();

  // --- reading
  // The first line that has not been consumed, nullptr while it has not come.
  const Line* arrived();
  // The first line, of this kind, has been consumed; and the fragment that it announced, if it is of such a kind.
  void consume(LineKind kind, std::span<const std::byte> fragment) {
    from_.pass(from_.in(lanes_.in()));
    kind == LineKind::inside ? acks_.consume(false) : consume_elsewhere(kind, fragment);
  }

  // The end of this rank's use. The peer hears that what it has written to this rank's ring is not read any more.
  void close();
  // Whether the peer reads nothing more of what this rank has written to its ring, nor, if it is not null, what line
  // number `lent` of this rank announced. After close().
  bool are_read(const std::uint32_t* lent);

  // Writes what no line has taken along: a post, an acknowledgement.
  void flush() {
    if (posts_.has_waiting() || acks_.are_owed()) write_owed();
  }

 private:
  // A number outside of the unread lines is old: Lane::ack may lag far behind the stamps.
  void read_ack(std::uint32_t ack) {
    if (ack - unread_.acked <= unread_.count()) unread_.acked = ack;
  }
  void note(const Line& line, std::uint32_t number);
  void consume_elsewhere(LineKind kind, std::span<const std::byte> fragment);
  void write_owed();

  const std::uint64_t communicator_;
  const int rank_;
  LanePair lanes_;
  Unread unread_{kFirstLine, kFirstLine};
  NextLine to_;
  LinePlace from_;                     // the first line that this rank has not consumed
  std::uint32_t noted_ = kFirstLine;   // lines of the peer below this number have been looked at (note)
  std::uint32_t reused_ = kFirstLine;  // above the last of them whose fragment lies in this rank's ring
  Posts posts_;
  Ring ring_;
  Acks acks_;
};

inline void Lines::announce(Line& line, const Tag& tag, LineKind kind, std::uint64_t total) {
  line.tag[0] = tag.word[0];
  line.tag[1] = tag.word[1];
  line.kind_and_total.store((static_cast<std::uint64_t>(kind) << 48) | total | to_.advance(kind),
                            std::memory_order_relaxed);
  if (kind != LineKind::inside) line.post = posts_.has_waiting() ? posts_.take_along(tag) : PostedAt{};
  const std::uint32_t given_back = acks_.given_back(), written = unread_.written + 1;
  line.stamp.store((static_cast<std::uint64_t>(given_back) << 32) | written, std::memory_order_release);
  unread_.written = written;
  acks_.tell(given_back);
  lanes_.notify();
}

inline const Line* Lines::arrived() {
  const std::uint32_t number = acks_.consumed();
  const Line& line = from_.in(lanes_.in());
  const std::uint64_t stamp = line.stamp.load(std::memory_order_acquire);
  if (static_cast<std::uint32_t>(stamp) != number + 1) return nullptr;
  read_ack(static_cast<std::uint32_t>(stamp >> 32));
  if (noted_ == number) note(line, number);
  return &line;
}

// The first look at a line that has come.
inline void Lines::note(const Line& line, std::uint32_t number) {
  noted_ = number + 1;
  const LineKind kind = kind_of(line);
  if (kind == LineKind::inside) return;
  posts_.heard(line.post);
  if (kind == LineKind::ring || kind == LineKind::reused) acks_.kept().peer_sent();
  if (kind != LineKind::reused) return;
  ring_.lend(static_cast<std::uint32_t>(line.at));
  reused_ = noted_;
}

// Where the peer wants this rank's message number `message`, of `bytes`, if that is in memory which both map; nullptr
// if it is not, or if the peer has not said. Throws LengthMismatch, TagMismatch, ChannelClosed.
std::byte* posted_for(Lines& lines, std::uint64_t message, const Tag& tag, std::size_t bytes);

}  // namespace tutti::internal::shm
