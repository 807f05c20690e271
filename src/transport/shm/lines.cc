#include "transport/shm/lines.h"

namespace tutti::internal::shm {

void Lines::refresh_acked() {
  Lane& in = lanes_.in();
  const std::uint32_t ack = in.ack.load(std::memory_order_acquire), first = acks_.consumed();
  LinePlace place = from_;
  for (std::uint32_t number = first; number - first < kLines; ++number) {
    const Line& line = place.in(in);
    const std::uint64_t stamp = line.stamp.load(std::memory_order_acquire);
    if (static_cast<std::uint32_t>(stamp) != number + 1) break;
    if (noted_ == number) note(line, number);  // space is not free that the peer has written to
    read_ack(static_cast<std::uint32_t>(stamp >> 32));
    place.pass(line);
  }
  read_ack(ack);
}

void Lines::consume_elsewhere(LineKind kind, std::span<const std::byte> fragment) {
  if (kind == LineKind::ring) {
    std::byte* const ring = lanes_.in().ring;
    acks_.consume_fragment(ring + (fragment.data() - ring), fragment.size(), unread_);
  } else {
    if (kind == LineKind::reused) ring_.take_back(acks_.kept().should_keep_own());
    acks_.consume(kind == LineKind::lent || kind == LineKind::readable || kind == LineKind::split);
  }
}

void Lines::close() {
  if (!lanes_.is_connected()) return;
  refresh_acked();
  if (!acks_.told_of(reused_)) lanes_.out().ack.store(reused_, std::memory_order_release);
  // If the peer's end has gone before, its lane is free memory, and nobody looks there.
  if (lanes_.in().closed.load(std::memory_order_acquire) == 0 || lanes_.theirs().find_lane(communicator_, rank_) != 0)
    lanes_.out().closed.store(1, std::memory_order_release);
}

bool Lines::are_read(const std::uint32_t* lent) {
  refresh_acked();
  if (acks_.kept().reusing(unread_) == 0 && (lent == nullptr || !unread_.has(*lent))) return true;
  // The peer's end has closed, or went before it had found this one.
  return lanes_.in().closed.load(std::memory_order_acquire) != 0 || lanes_.is_gone() ||
         lanes_.theirs().find_lane(communicator_, rank_) == 0;
}

void Lines::write_owed() {
  if (posts_.has_waiting()) posts_.write_alone(lanes_.out());
  if (!acks_.are_owed() || !lanes_.connect()) return;  // it has closed its end, and waits for nothing
  if (acks_.tell_alone(lanes_.out().ack)) lanes_.notify();
}

std::byte* posted_for(Lines& lines, std::uint64_t message, const Tag& tag, std::size_t bytes) {
  const LanePair& lanes = lines.lanes();
  const PostedAt posted = lines.posts().find(message, tag, lanes.in(), lanes.peer());
  if (posted.message == 0) return nullptr;
  lanes.throw_if_withdrawn();
  if (posted.bytes != bytes) throw LengthMismatch{lanes.peer(), bytes, posted.bytes};
  return (posted.at & kPrivate) != 0 ? nullptr : posted_at(lanes, posted.at, bytes);
}

}  // namespace tutti::internal::shm
