#include "transport/shm/receiver.h"

#include <algorithm>

#include "memory/copy.h"
#include "memory/string_copy.h"
#include "transport/transport.h"

namespace tutti::internal::shm {
namespace {

constexpr std::size_t kReadAtOnceBytes = 4 << 20;  // of private memory: half a millisecond

// Of a fragment that the line announces. nullptr if it cannot be there.
const std::byte* fragment_at(Lines& lines, LineKind kind, std::uint64_t at, std::uint64_t bytes) {
  const LanePair& lanes = lines.lanes();
  if (bytes > kMaxRingBytes) return nullptr;
  if (kind == LineKind::ring) return lanes.in_ring_has(at, space_of(bytes)) ? lanes.in().ring + at : nullptr;
  const Space space = lines.ring().lent();
  return bytes <= space.bytes() && space.bytes() > 0 ? lanes.out().ring + space.begin : nullptr;
}

// A whole message in the peer's symmetric memory.
const std::byte* shared_message(const LanePair& lanes, std::uint64_t at, std::size_t bytes) {
  lanes.throw_if_withdrawn();
  const std::byte* const data = at < kSymmetricOffset ? nullptr : lanes.theirs().at(at, bytes);
  if (data == nullptr) lanes.throw_makes_no_sense("it lent bytes outside of its symmetric memory");
  return data;
}

// Where its bytes lie, the peer is not believed: a wrong peer must not make this rank touch memory that is not the
// channel's.
std::span<const std::byte> payload_elsewhere(Lines& lines, const Line& line, LineKind kind, std::size_t left) {
  const LanePair& lanes = lines.lanes();
  if (kind == LineKind::delivered) return {};
  const std::uint64_t at = line.at, bytes = line.bytes;
  if (bytes > left) lanes.throw_makes_no_sense("it announced more bytes than the message has");
  if (is_in_ring(kind)) {
    const std::byte* const data = fragment_at(lines, kind, at, bytes);
    if (data == nullptr)
      lanes.throw_makes_no_sense(kind == LineKind::ring ? "it announced bytes outside of its ring"
                                                        : "it announced bytes where this rank had not written any");
    return {data, bytes};
  }
  if (kind != LineKind::lent) lanes.throw_makes_no_sense("it announced bytes in a way that this version does not know");
  return {shared_message(lanes, at, bytes), bytes};
}

// The message of a line that announces all of it in one fragment; else nullptr.
const std::byte* whole_fragment(Lines& lines, const Line& line, LineKind kind, std::size_t bytes) {
  return is_in_ring(kind) && line.bytes == bytes ? fragment_at(lines, kind, line.at, bytes) : nullptr;
}

// If both ranks send, string copies are quicker, or copies that fetch the lines for what this rank writes there next.
// If only the peer sends, vectors are.
void copy_out(Lines& lines, std::byte* to, std::span<const std::byte> fragment, bool past_cache,
              bool fetches_to_write) {
  if (past_cache || !lines.acks().kept().may_keep()) {
    copy_bytes(to, fragment.data(), fragment.size(), past_cache);
  } else if (fetches_to_write) {
    copy_fetching(to, fragment.data(), fragment.size());
  } else {
    copy_to_peer(to, fragment.data(), fragment.size());
  }
}

}  // namespace

// For a line that somebody needs. A peer that has gone may have written it before: so there is a second look. The peer
// may also have closed its end by now, or this rank not have looked for it yet; but it handed its segment over first.
inline const Line* Receiver::awaited() {
  const Line* line = lines_.arrived();
  LanePair& lanes = lines_.lanes();
  if (lanes.who() == nullptr) lanes.connect();
  if (line != nullptr || !lanes.is_gone()) return line;
  line = lines_.arrived();
  if (line == nullptr) lanes.throw_gone();
  return line;
}

inline void Receiver::check(const Line& line, const Tag& tag, std::size_t bytes) const {
  if (tag_of(line.tag) != tag) throw TagMismatch{lines_.lanes().peer(), tag, tag_of(line.tag)};
  if (total_of(line) != bytes) throw LengthMismatch{lines_.lanes().peer(), bytes, total_of(line)};
}

// left: bytes of the message that have not come before this line.
inline std::span<const std::byte> Receiver::payload(const Line& line, LineKind kind, std::size_t left) const {
  if (kind != LineKind::inside) return payload_elsewhere(lines_, line, kind, left);
  const std::size_t total = total_of(line);
  if (total > std::min(left, kInlineBytes))
    lines_.lanes().throw_makes_no_sense("it announced more bytes than a line has");
  return {line.inside, total};
}

// Whether anything moved.
bool Receiver::fill_from_private(Wanted& want, const Line& line) {
  const std::size_t left = want.bytes - want.done, now = std::min(left, kReadAtOnceBytes);
  const bool is_read = !private_.is_declined() && private_.read(line, left, want.data + want.done, now);
  const std::size_t moved = is_read ? now : private_.take_piece(want.data + want.done, left);
  want.done += moved;
  return moved > 0;
}

// Of a message that both ranks copy. False: it has been declined.
bool Receiver::copy_part(const Line& line, const Wanted& want, SplitReceiver::Part part, std::byte* to) {
  const std::uint64_t at = line.at;
  if ((at & kPrivate) != 0) return private_.read(line, want.bytes - part.begin, to, part.bytes);
  copy_bytes(to, shared_message(lines_.lanes(), at, want.bytes) + part.begin, part.bytes, want.past_cache);
  return true;
}

// Of a message that both ranks copy (SplitReceiver). True: something moved; and if want.done is want.bytes, all is
// here, and the peer writes no more.
bool Receiver::fill_by_parts(Wanted& want, const Line& line) {
  LanePair& lanes = lines_.lanes();
  if (want.bytes == 0 || want.bytes > kMostSplitBytes)
    lanes.throw_makes_no_sense("it splits a message of such a length");
  lines_.flush();  // the peer may not know yet where this rank wants the message
  std::byte* const to = want.posted.offset != 0 ? lanes.own().at(want.posted.offset) : want.data;
  if (private_.is_declined()) {
    split_.take_all(want.bytes);
    const std::size_t left = want.bytes - want.done;
    const std::size_t shown = left > 0 ? private_.take_piece(to + want.done, left) : 0;
    want.done += shown;
    if (shown < left) return shown > 0;
  } else if (const auto part = split_.take(want.bytes); part.bytes > 0) {
    if (copy_part(line, want, part, to + part.begin)) want.done += part.bytes;
    return true;
  }
  if (split_.is_settled(want.bytes)) {
    want.done = want.bytes;
    return true;
  }
  lanes.throw_if_withdrawn();
  if (lanes.is_gone()) lanes.throw_gone();
  return false;  // the peer still writes
}

void Receiver::receive(std::uint64_t message, const Tag& tag, std::byte* data, std::size_t bytes,
                       const ReceiveHints& hints) {
  LanePair& lanes = lines_.lanes();
  Place place;
  const bool posts = bytes > kInlineBytes && message - done_ < kPosts && lanes.connect();
  const bool is_shared = posts && lanes.own().holds(data, bytes, place);
  wanted_.push({message, tag, data, bytes, 0, hints.past_cache, hints.fetches_to_write, place});
  if (is_shared) {
    lines_.posts().want({message + 1, place.offset, bytes}, tag, lanes.out());
  } else if (posts && hints.may_split && lanes.in().writes.load(std::memory_order_relaxed) != 0) {
    lines_.posts().want({message + 1, reinterpret_cast<std::uintptr_t>(data) | kPrivate, bytes}, tag, lanes.out());
  }
}

bool Receiver::fill_some() {
  bool moved = false;
  while (awaits_wanted()) {
    Wanted& want = wanted_.front();
    const Line* line = awaited();
    if (line == nullptr) break;
    check(*line, want.tag, want.bytes);
    const LineKind kind = kind_of(*line);
    std::span<const std::byte> fragment;
    if (kind == LineKind::delivered) {
      if (want.posted.offset == 0) lines_.lanes().throw_makes_no_sense("it wrote a message to where nobody wanted it");
      lines_.lanes().own().take(want.data, want.bytes, want.posted);
      want.done = want.bytes;
    } else if (kind == LineKind::readable || kind == LineKind::split) {
      if (!(kind == LineKind::split ? fill_by_parts(want, *line) : fill_from_private(want, *line))) break;
      moved = true;
      if (want.done < want.bytes) break;  // others may have something to do meanwhile
      if (kind == LineKind::split && want.posted.offset != 0)
        lines_.lanes().own().take(want.data, want.bytes, want.posted);
      private_.pass();
    } else {
      fragment = payload(*line, kind, want.bytes - want.done);
      copy_out(lines_, want.data + want.done, fragment, want.past_cache, want.fetches_to_write && is_in_ring(kind));
      want.done += fragment.size();
    }
    if (kind == LineKind::split) split_.pass();
    lines_.consume(kind, fragment);
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
  if (!shown_.is_there && !show(tag, bytes)) return false;
  if (shown_.kind == LineKind::lent || shown_.kind == LineKind::split || private_.is_declined())
    lines_.lanes().throw_if_withdrawn();
  here = shown_.rest;
  return true;
}

// The first line, as it says of itself now: what a wrong peer writes there later is not looked at.
bool Receiver::show(const Tag& tag, std::size_t bytes) {
  const Line* const line = awaited();
  if (line == nullptr) return false;
  if (!viewing_) {
    check(*line, tag, bytes);
    viewing_ = true;
    view_left_ = bytes;
  }
  const LineKind kind = kind_of(*line);
  const std::uint64_t at = line->at;
  shown_.is_read = kind == LineKind::readable || (kind == LineKind::split && (at & kPrivate) != 0);
  if (shown_.is_read) {
    shown_.rest = private_.show(*line, view_left_);
    if (shown_.rest.empty()) return false;
  } else if (kind == LineKind::split) {
    shown_.rest = {shared_message(lines_.lanes(), at, view_left_), view_left_};
  } else {
    shown_.rest = payload(*line, kind, view_left_);
  }
  shown_.kind = kind;
  shown_.all = shown_.rest;
  shown_.is_there = true;
  return true;
}

// What is shown lies elsewhere than in the line, and all of it has been used.
void Receiver::release_elsewhere() {
  if (private_.is_declined()) private_.pass_piece();
  if (shown_.is_read && view_left_ > 0) return;
  private_.pass();
  if (shown_.kind == LineKind::split) split_.pass();
  lines_.consume(shown_.kind, shown_.all);
}

void Receiver::release(std::size_t bytes) {
  shown_.rest = shown_.rest.subspan(bytes);
  view_left_ -= bytes;
  if (shown_.rest.empty()) {
    shown_.is_there = false;
    if (shown_.kind == LineKind::inside) {
      lines_.consume(LineKind::inside, {});
    } else {
      release_elsewhere();
    }
  }
  if (view_left_ == 0) {
    viewing_ = false;
    ++done_;
  } else {
    lines_.flush();
  }
}

const std::byte* Receiver::look_at_once(const Tag& tag, std::size_t bytes) {
  if (!wanted_.empty() || viewing_ || !lines_.lanes().is_connected()) return nullptr;
  lines_.flush();  // not when a message is taken: what this rank sends next would wait until the peer's memory has it
  const Line* const line = lines_.arrived();
  if (line == nullptr || total_of(*line) != bytes || tag_of(line->tag) != tag) return nullptr;
  const LineKind kind = kind_of(*line);
  const std::byte* const data = kind == LineKind::inside ? (bytes <= kInlineBytes ? line->inside : nullptr)
                                                         : whole_fragment(lines_, *line, kind, bytes);
  if (data != nullptr) at_once_ = {kind, {data, bytes}};
  return data;
}

void Receiver::take_at_once(std::byte* to, bool fetches_to_write) {
  const auto [kind, message] = at_once_;
  if (to != nullptr && kind == LineKind::inside) copy_short(to, message.data(), message.size());
  if (to != nullptr && kind != LineKind::inside) copy_out(lines_, to, message, false, fetches_to_write);
  lines_.consume(kind, message);
  ++done_;
}

bool Receiver::unclaimed(Tag& tag) {
  if (!wanted_.empty() || viewing_) return false;
  const Line* line = lines_.arrived();
  if (line == nullptr) return false;
  tag = tag_of(line->tag);
  return true;
}

}  // namespace tutti::internal::shm
