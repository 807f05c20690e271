#include "transport/shm/fragments.h"

#include "memory/copy.h"
#include "memory/string_copy.h"
#include "tutti/error.h"

namespace tutti::internal::shm {

void Fragments::prepare_ring() {
  wants_ring_ = false;
  claim_until(lines_.ring().bytes().both_ways);
  try {
    claim_until(wanted());
  } catch (const Error&) {
    can_grow_ = false;  // what there is serves as well
  }
}

void Fragments::prepare_wanted_ring() {
  if (!wants_ring_) return;
  try {
    prepare_ring();
  } catch (const Error&) {
  }
}

void Fragments::claim_until(std::size_t bytes) {
  if (claimed_ >= bytes) return;
  lines_.lanes().claim_out_ring(claimed_, bytes - claimed_);
  claimed_ = bytes;
}

bool Fragments::find_room(std::size_t bytes) {
  room_ = {lines_.acks().find_kept(bytes), LineKind::reused, {}, true};
  if (room_.at != nullptr) return true;
  if (!has_ring()) prepare_ring();
  Ring& ring = lines_.ring();
  const bool packed = !is_one_way() && ring.bytes().is_packed;
  const auto find = [&] { return ring.find(bytes, lines_.unread(), wanted(), packed, room_.space); };
  if (packed || !find()) {
    lines_.refresh_acked();
    if (!find()) return false;
  }
  room_.at = lines_.lanes().out().ring + room_.space.begin;
  room_.kind = LineKind::ring;
  room_.is_read = ring.has_spare();
  return true;
}

void Fragments::write(const Tag& tag, const std::byte* data, std::size_t bytes, std::uint64_t total) {
  if (by_string(bytes, total)) {
    copy_by_string(room_.at, data, bytes);
  } else {
    if (!room_.is_read) look(bytes);
    copy_bytes(room_.at, data, bytes, !room_.is_read && is_far());
  }
  announce(tag, bytes, total);
}

void Fragments::announce(const Tag& tag, std::size_t bytes, std::uint64_t total) {
  Line& line = lines_.next();
  const std::uint32_t number = lines_.unread().written;
  if (room_.kind == LineKind::reused) {
    line.at = lines_.acks().kept().take(number);
  } else {
    line.at = room_.space.begin;
    lines_.ring().take(room_.space, number);
  }
  line.bytes = bytes;
  lines_.acks().kept().sent_one(bytes);
  lines_.announce(line, tag, room_.kind, total);
}

}  // namespace tutti::internal::shm
