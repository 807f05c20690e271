// How messages are copied for the peer: a fragment at a time, into space that this rank has read, or its ring.
#include <algorithm>

#include "memory/string_copy.h"
#include "transport/shm/sender.h"

namespace tutti::internal::shm {

bool Sender::push_by_ring(Message& message) {
  while (message.done < message.bytes) {
    const std::size_t bytes = std::min(fragment_bytes(lines_.ring().bytes()), message.bytes - message.done);
    if (!lines_.has_room() || !find_room(bytes)) return false;
    if (!room_.is_read && !copies_by_string(bytes)) distance_.look(lines_.next().stamp, bytes);
    copy_to_peer(room_.at, message.data + message.done, bytes, !room_.is_read && distance_.is_far());
    announce_fragment(message.tag, bytes, message.bytes);
    message.done += bytes;
  }
  ++pushed_;
  return true;
}

bool Sender::find_room(std::size_t bytes) {
  room_ = {lines_.acks().find_kept(bytes), LineKind::reused, {}, true};
  if (room_.at != nullptr) return true;
  Ring& ring = lines_.ring();
  if (!ring.find(bytes, lines_.unread(), room_.space)) {
    lines_.refresh_acked();
    if (!ring.find(bytes, lines_.unread(), room_.space)) return false;
  }
  if (!ring_claimed_) {
    lines_.lanes().claim_out_ring(ring.bytes());
    ring_claimed_ = true;
  }
  room_.at = lines_.lanes().out().ring + room_.space.begin;
  room_.kind = LineKind::ring;
  room_.is_read = ring.has_spare();
  return true;
}

// Publishes the next line: a fragment of a message of `total` bytes is in room_.
void Sender::announce_fragment(const Tag& tag, std::size_t bytes, std::uint64_t total) {
  Line& line = lines_.next();
  const std::uint32_t number = lines_.unread().written;
  if (room_.kind == LineKind::reused) {
    line.at = lines_.acks().kept().take(number);
  } else {
    line.at = room_.space.begin;
    lines_.ring().take(room_.space, number);
  }
  line.bytes = bytes;
  lines_.acks().kept().sent_one();
  lines_.announce(line, tag, room_.kind, total);
}

}  // namespace tutti::internal::shm
