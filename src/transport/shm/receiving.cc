// The receiving half of a channel: lines as they arrive, shown where they lie or filled into what was lent.
#include <algorithm>

#include "memory/copy.h"
#include "transport/shm/channel.h"

namespace tutti::shm {
namespace {

constexpr std::size_t kAckAtOnceBytes = 4 << 10;  // of the ring: the sender may be waiting for room

}  // namespace

// The first look at a line that has come.
void Channel::note(const Line& line) {
  noted_ = line_in_ + 1;
  if (kind_of(line) != LineKind::inside && line.post.message != 0)
    posts_in_[(line.post.message - 1) % kPosts] = line.post;
}

// For a line that somebody needs. What a peer wrote, it wrote before it went; it may also have closed its end of this
// channel by now, or this rank not have looked for it yet. Its segment was handed over before it wrote anything.
inline const Line* Channel::awaited() {
  const Line* line = arrived();
  if (theirs_ == nullptr) connect();
  if (line != nullptr || who_ == nullptr || !who_->gone.load(std::memory_order_acquire)) return line;
  line = arrived();
  if (line == nullptr) throw_gone();
  return line;
}

inline const Line* Channel::checked(const Tag& tag, std::size_t bytes) {
  const Line* line = awaited();
  if (line == nullptr) return nullptr;
  if (tag_of(line->tag) != tag) throw TagMismatch{peer_, tag, tag_of(line->tag)};
  if (total_of(*line) != bytes) throw LengthMismatch{peer_, bytes, total_of(*line)};
  return line;
}

// What the peer says of where its bytes lie is not believed: a peer that is wrong must not make this rank touch memory
// that is not the channel's.
inline std::span<const std::byte> Channel::payload(const Line& line, std::size_t left) const {
  const LineKind kind = kind_of(line);
  if (kind == LineKind::inside) {
    const std::size_t total = total_of(line);
    if (total > std::min(left, kInlineBytes)) throw_makes_no_sense("it announced more bytes than a line has");
    return {line.inside, total};
  }
  if (kind == LineKind::delivered) return {};
  const std::uint64_t at = line.at, bytes = line.bytes;
  if (bytes > left) throw_makes_no_sense("it announced more bytes than the message has");
  if (kind == LineKind::ring) {
    if (at > kMostRingBytes || bytes > kMostRingBytes - at ||
        !transport_.own().file_has(in_offset_ + kLaneHeadBytes + at, bytes))
      throw_makes_no_sense("it announced bytes outside of its ring");
    return {in_->ring + at, bytes};
  }
  if (kind != LineKind::lent) throw_makes_no_sense("it announced bytes in a way that this version does not know");
  throw_if_withdrawn();
  const std::byte* const data = at < kSymmetricOffset ? nullptr : theirs_->at(at, bytes);
  if (data == nullptr) throw_makes_no_sense("it lent bytes outside of its symmetric memory");
  return {data, bytes};
}

inline void Channel::consume_line(bool peer_waits) {
  ++line_in_;
  peer_waits_ |= peer_waits;
}

void Channel::receive(std::uint64_t message, const Tag& tag, std::byte* data, std::size_t bytes, bool past_cache) {
  wanted_.push({message, tag, data, bytes, 0, past_cache});
  std::uint64_t at;
  if (bytes <= kInlineBytes || message - messages_done_ >= kPosts || !connect() ||
      !transport_.is_symmetric(data, bytes, at))
    return;
  write_waiting_post();
  waiting_post_ = {message + 1, at, bytes};
  waiting_tag_ = tag;
}

void Channel::write_waiting_post() {
  if (waiting_post_.message == 0) return;
  Post& post = out_->posts[(waiting_post_.message - 1) % kPosts];
  post.tag[0] = waiting_tag_.word[0];
  post.tag[1] = waiting_tag_.word[1];
  post.post = waiting_post_;
  post.stamp.store(waiting_post_.message, std::memory_order_release);
  waiting_post_ = {};
}

bool Channel::fill() {
  bool moved = false;
  while (!wanted_.empty() && wanted_.front().message == messages_done_) {
    Wanted& want = wanted_.front();
    const Line* line = checked(want.tag, want.bytes);
    if (line == nullptr) break;
    const LineKind kind = kind_of(*line);
    if (kind == LineKind::delivered) {
      want.done = want.bytes;
    } else {
      const auto bytes = payload(*line, want.bytes - want.done);
      copy_bytes(want.data + want.done, bytes.data(), bytes.size(), want.past_cache);
      want.done += bytes.size();
    }
    consume_line(kind == LineKind::lent || (kind == LineKind::ring && line->bytes >= kAckAtOnceBytes));
    moved = true;
    if (want.done == want.bytes) {
      wanted_.pop();
      ++received_;
      ++messages_done_;
      if (waiting_post_.message == messages_done_) waiting_post_ = {};  // it came without
    } else {
      flush();
    }
  }
  return moved;
}

std::uint64_t Channel::received() {
  fill();
  return received_;
}

bool Channel::view(const Tag& tag, std::size_t bytes, std::span<const std::byte>& here) {
  if (!wanted_.empty()) {
    fill();
    if (!wanted_.empty() && wanted_.front().message == messages_done_) return false;
  }
  const Line* line = viewing_ ? awaited() : checked(tag, bytes);
  if (line == nullptr) return false;
  if (!viewing_) {
    viewing_ = true;
    view_left_ = bytes;
    view_at_ = 0;
  }
  here = payload(*line, view_left_ + view_at_).subspan(view_at_);
  return true;
}

void Channel::release(std::size_t bytes) {
  const Line& line = in_->lines[line_in_ % kLines];
  const LineKind kind = kind_of(line);
  view_at_ += bytes;
  view_left_ -= bytes;
  if (view_at_ == payload(line, view_left_ + view_at_).size()) {
    view_at_ = 0;
    consume_line(kind == LineKind::lent || (kind == LineKind::ring && line.bytes >= kAckAtOnceBytes));
  }
  if (view_left_ == 0) {
    viewing_ = false;
    ++messages_done_;
  } else {
    flush();
  }
}

}  // namespace tutti::shm
