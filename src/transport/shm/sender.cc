#include "transport/shm/sender.h"

#include <utility>

#include "memory/copy.h"
#include "memory/string_copy.h"
#include "transport/transport.h"

namespace tutti::internal::shm {
namespace {

// Whether this rank may lend the message, which then lies at `place` in memory that both map. Such a message is lent
// even if the peer has said where it wants it, unless this rank is to copy. So the same side copies each time, and the
// copied cache lines stay with its core.
bool may_lend(const LanePair& lanes, const LookedUp& known, const std::byte* data, std::size_t bytes, Copier copier,
              Place& place) {
  if (bytes < kCopyBelowBytes || copier.shared == SharedCopier::sender) return false;
  if (data != known.data || bytes != known.bytes) return lanes.own().holds(data, bytes, place);
  place = known.place;
  return true;
}

// Whether the message that this rank reads comes in pieces. Their acknowledgements would wait for a result that is made
// in kept space, and the peer for room.
bool reads_pieces(Lines& lines) {
  const Line* const line = lines.arrived();
  return line != nullptr && kind_of(*line) != LineKind::inside && line->bytes < total_of(*line);
}

// Whether the peer is to read this private memory, and can: as this rank would read the peer's.
bool is_readable(Lines& lines, ReadableMemory& known, const SplitSender& splits, const std::byte* data,
                 std::size_t bytes, OrdinaryCopier copier) {
  const auto reads = [](const Lane& lane) { return lane.reads.load(std::memory_order_relaxed) != 0; };
  const bool peer_reads = copier == OrdinaryCopier::split ? splits.can_split(bytes) : copier == OrdinaryCopier::peer;
  return bytes >= kReadFromBytes && peer_reads && reads(lines.lanes().in()) && reads(lines.lanes().out()) &&
         known.has(data, bytes);
}

}  // namespace

// --- messages that are lent or copied --------------------------------------------------------------------------------

// Into a line of its own, for which there is room.
inline void Sender::push_inside(const Tag& tag, const std::byte* data, std::size_t bytes) {
  Line& line = lines_.next();
  copy_short(line.inside, data, bytes);
  lines_.announce(line, tag, LineKind::inside, bytes);
  ++pushed_;
}

void Sender::send_at_once(const Tag& tag, const std::byte* data, std::size_t bytes) {
  if (bytes <= kInlineBytes) return push_inside(tag, data, bytes);
  fragments_.write(tag, data, bytes, bytes);
  ++pushed_;
}

// Whether a message that no line holds is to be copied, and has room.
bool Sender::prepare_fragment(const std::byte* data, std::size_t bytes, Copier copier) {
  Place place;
  if (may_lend(lines_.lanes(), {}, data, bytes, copier, place)) return false;
  if (is_readable(lines_, readable_, splits_, data, bytes, copier.ordinary)) return false;
  return fragments_.find_room_at_once(bytes);
}

void Sender::send(const Tag& tag, const std::byte* data, std::size_t bytes, Copier copier) {
  if (bytes <= kInlineBytes && waiting_.empty() && lines_.lanes().connect() && lines_.has_room())
    return push_inside(tag, data, bytes);
  Message message{tag, data, bytes, 0, std::exchange(copies_next_, false) ? Copier{SharedCopier::sender} : copier};
  if (!waiting_.empty() || !push(message)) waiting_.push(message);
  looked_up_ = {};
}

bool Sender::push(Message& message) {
  const auto& [tag, data, bytes, done, copier] = message;
  if (!lines_.lanes().connect()) return false;
  if (done > 0) return push_by_ring(message);
  if (!lines_.has_room()) return false;
  if (bytes <= kInlineBytes) {
    push_inside(tag, data, bytes);
    return true;
  }
  fragments_.prepare_wanted_ring();
  Place place;
  std::uint64_t at = 0;
  LineKind kind = LineKind::delivered;
  const bool splits = copier.ordinary == OrdinaryCopier::split;
  const auto reads = [&] { return is_readable(lines_, readable_, splits_, data, bytes, copier.ordinary); };
  const bool can_lend = may_lend(lines_.lanes(), looked_up_, data, bytes, copier, place);
  const bool is_far = can_lend && copier.shared == SharedCopier::far_sender && reads_from_far(bytes);
  std::byte* const to = can_lend && !is_far ? nullptr : posted_for(lines_, pushed_, tag, bytes);
  if (can_lend && to == nullptr) {
    kind = copier.shared == SharedCopier::split && bytes <= kMostSplitBytes ? LineKind::split : LineKind::lent;
    at = place.offset;
  } else if (to != nullptr && !(splits && reads())) {
    copy_to_peer(to, data, bytes, is_far);
  } else if (reads()) {
    kind = splits ? LineKind::split : LineKind::readable;
    at = reinterpret_cast<std::uintptr_t>(data) | kPrivate;
  } else {
    message.copier = {SharedCopier::sender};
    return push_by_ring(message);
  }
  if (kind == LineKind::split && !splits_.has_room()) return false;
  Line& line = lines_.next();
  if (kind != LineKind::delivered) {
    if ((at & kPrivate) == 0) lines_.lanes().own().show(data, bytes, place);
    lent_.push({pushed_, lines_.unread().written, data, bytes, (at & kPrivate) != 0});
    if (kind == LineKind::split) splits_.add(pushed_, tag, data, bytes);
    line.at = at, line.bytes = bytes;
  }
  lines_.announce(line, tag, kind, bytes);
  ++pushed_;
  return true;
}

bool Sender::push_by_ring(Message& message) {
  while (message.done < message.bytes) {
    const std::size_t bytes = fragments_.next_bytes(message.bytes - message.done, message.bytes);
    if (!lines_.has_room() || !fragments_.find_room(bytes)) return false;
    fragments_.write(message.tag, message.data + message.done, bytes, message.bytes);
    message.done += bytes;
  }
  ++pushed_;
  return true;
}

bool Sender::push_some() {
  bool moved = false;
  while (!waiting_.empty()) {
    const std::size_t before = waiting_.front().done;
    const bool whole = push(waiting_.front());
    moved |= whole || waiting_.front().done != before;
    if (!whole) break;
    waiting_.pop();
  }
  return moved;
}

// Messages given back, where some may not have been.
std::uint64_t Sender::returned() {
  const bool gone = lines_.lanes().is_gone();
  last_lent();
  if (gone && !(lent_.empty() && waiting_.empty())) lines_.lanes().throw_gone();
  if (resend_.answer(lent_)) readable_ = {};
  splits_.write_part();
  return lent_.empty() ? pushed_ : lent_.front().message;
}

// --- room at the peer ------------------------------------------------------------------------------------------------

std::byte* Sender::reserve(const Tag& tag, std::size_t bytes, const std::byte* source, Copier copier, bool past_cache) {
  copies_next_ = false;
  if (bytes <= kInlineBytes || !waiting_.empty() || !lines_.lanes().connect() || !lines_.has_room()) return nullptr;
  Place place;
  if (source != nullptr && may_lend(lines_.lanes(), looked_up_, source, bytes, copier, place)) {
    looked_up_ = {source, bytes, place};
    return nullptr;
  }
  fragments_.prepare_wanted_ring();
  reserved_bytes_ = bytes;
  if (std::byte* const posted = posted_for(lines_, pushed_, tag, bytes)) {
    reserved_ = LineKind::delivered;
    return posted;
  }
  if (source != nullptr && is_readable(lines_, readable_, splits_, source, bytes, copier.ordinary)) return nullptr;
  if (past_cache || bytes > fragments_.most_bytes() || !fragments_.find_room(bytes)) return nullptr;
  if (!fragments_.room_is_read()) {
    // Results that are made in the ring go through the cache. Where that is slower, they are made elsewhere and copied.
    // A message is looked at once: here, or when it is copied.
    const bool by_string = fragments_.by_string(bytes, bytes);
    copies_next_ = by_string && source == nullptr;
    // A pass that also makes the caller's own copy would use strings (reduce.cc), which here are slower than vectors.
    const bool is_copied_otherwise = source != nullptr && !by_string && copies_by_string(bytes);
    if (copies_next_ || is_copied_otherwise || (!by_string && fragments_.is_far())) return nullptr;
    if (!by_string) fragments_.look(bytes);
  }
  if (fragments_.kind() == LineKind::reused) {
    if (reads_pieces(lines_)) return nullptr;
    lines_.acks().kept().hold();
  }
  reserved_ = fragments_.kind();
  return fragments_.room();
}

void Sender::commit(const Tag& tag) {
  if (reserved_ == LineKind::delivered) {
    lines_.announce(lines_.next(), tag, reserved_, reserved_bytes_);
  } else {
    fragments_.announce(tag, reserved_bytes_, reserved_bytes_);
  }
  ++pushed_;
}

}  // namespace tutti::internal::shm
