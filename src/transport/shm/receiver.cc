#include "transport/shm/receiver.h"

#include <algorithm>

#include "memory/copy.h"
#include "transport/transport.h"

namespace tutti::internal::shm {
namespace {

constexpr std::size_t kAckAtOnceBytes = 4 << 10;  // of the ring: the sender may be waiting for room

bool sender_waits(const Line& line, LineKind kind) {
  return kind == LineKind::lent || (kind == LineKind::ring && line.bytes >= kAckAtOnceBytes);
}

}  // namespace

// For a line that somebody needs. A peer that has gone may have written it before: so there is a second look. The peer
// may also have closed its end by now, or this rank not have looked for it yet; but it handed its segment over first.
inline const Line* Receiver::awaited() {
  const Line* line = lines_.arrived();
  LanePair& lanes = lines_.lanes();
  if (!lanes.knows_peer()) lanes.connect();
  if (line != nullptr || !lanes.is_gone()) return line;
  line = lines_.arrived();
  if (line == nullptr) lanes.throw_gone();
  return line;
}

inline void Receiver::check(const Line& line, const Tag& tag, std::size_t bytes) const {
  if (tag_of(line.tag) != tag) throw TagMismatch{lines_.lanes().peer(), tag, tag_of(line.tag)};
  if (total_of(line) != bytes) throw LengthMismatch{lines_.lanes().peer(), bytes, total_of(line)};
}

// left: bytes of the message that have not come before this line. Where its bytes lie, the peer is not believed: a
// wrong peer must not make this rank touch memory that is not the channel's.
inline std::span<const std::byte> Receiver::payload(const Line& line, std::size_t left) const {
  const LanePair& lanes = lines_.lanes();
  const LineKind kind = kind_of(line);
  if (kind == LineKind::inside) {
    const std::size_t total = total_of(line);
    if (total > std::min(left, kInlineBytes)) lanes.throw_makes_no_sense("it announced more bytes than a line has");
    return {line.inside, total};
  }
  if (kind == LineKind::delivered) return {};
  const std::uint64_t at = line.at, bytes = line.bytes;
  if (bytes > left) lanes.throw_makes_no_sense("it announced more bytes than the message has");
  if (kind == LineKind::ring) {
    if (!lanes.in_ring_has(at, bytes)) lanes.throw_makes_no_sense("it announced bytes outside of its ring");
    return {lanes.in().ring + at, bytes};
  }
  if (kind != LineKind::lent) lanes.throw_makes_no_sense("it announced bytes in a way that this version does not know");
  lanes.throw_if_withdrawn();
  const std::byte* const data = at < kSymmetricOffset ? nullptr : lanes.theirs().at(at, bytes);
  if (data == nullptr) lanes.throw_makes_no_sense("it lent bytes outside of its symmetric memory");
  return {data, bytes};
}

void Receiver::receive(std::uint64_t message, const Tag& tag, std::byte* data, std::size_t bytes, bool past_cache) {
  wanted_.push({message, tag, data, bytes, 0, past_cache});
  LanePair& lanes = lines_.lanes();
  std::uint64_t at;
  if (bytes <= kInlineBytes || message - done_ >= kPosts || !lanes.connect() || !lanes.own().holds(data, bytes, at))
    return;
  lines_.posts().want({message + 1, at, bytes}, tag, lanes.out());
}

bool Receiver::fill_some() {
  bool moved = false;
  while (awaits_wanted()) {
    Wanted& want = wanted_.front();
    const Line* line = awaited();
    if (line == nullptr) break;
    check(*line, want.tag, want.bytes);
    const LineKind kind = kind_of(*line);
    if (kind == LineKind::delivered) {
      want.done = want.bytes;
    } else {
      const auto bytes = payload(*line, want.bytes - want.done);
      copy_bytes(want.data + want.done, bytes.data(), bytes.size(), want.past_cache);
      want.done += bytes.size();
    }
    lines_.consume(sender_waits(*line, kind));
    moved = true;
    if (want.done == want.bytes) {
      wanted_.pop();
      lines_.posts().forget(done_);
      ++received_;
      ++done_;
    } else {
      lines_.flush();
    }
  }
  return moved;
}

bool Receiver::view(const Tag& tag, std::size_t bytes, std::span<const std::byte>& here) {
  if (!wanted_.empty()) {
    fill();
    if (awaits_wanted()) return false;
  }
  const Line* line = awaited();
  if (line == nullptr) return false;
  if (!viewing_) {
    check(*line, tag, bytes);
    viewing_ = true;
    view_left_ = bytes;
  }
  const auto bytes_of_line = payload(*line, view_left_ + line_at_);
  line_bytes_ = bytes_of_line.size();
  here = bytes_of_line.subspan(line_at_);
  return true;
}

void Receiver::release(std::size_t bytes) {
  line_at_ += bytes;
  view_left_ -= bytes;
  if (line_at_ == line_bytes_) {
    line_at_ = 0;
    const Line& line = lines_.first();
    lines_.consume(sender_waits(line, kind_of(line)));
  }
  if (view_left_ == 0) {
    viewing_ = false;
    ++done_;
  } else {
    lines_.flush();
  }
}

bool Receiver::unclaimed(Tag& tag) {
  if (!wanted_.empty() || viewing_) return false;
  const Line* line = lines_.arrived();
  if (line == nullptr) return false;
  tag = tag_of(line->tag);
  return true;
}

}  // namespace tutti::internal::shm
