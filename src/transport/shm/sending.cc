// The sending half of a channel: what is copied or lent, announced, and comes back with acknowledgements.
#include <algorithm>
#include <cstring>
#include <utility>

#include "memory/copy.h"
#include "transport/shm/channel.h"

namespace tutti::shm {
namespace {

std::size_t whole_lines(std::size_t bytes) { return (bytes + 63) / 64 * 64; }
bool reached(std::uint32_t count, std::uint32_t target) { return static_cast<std::int32_t>(count - target) >= 0; }

}  // namespace

// The newest word on what the peer has consumed: by itself, or on a line that nobody here has asked for yet.
void Channel::refresh_ack() {
  read_ack(in_->ack.load(std::memory_order_acquire));
  for (std::uint32_t number = line_in_; number - line_in_ < kLines; ++number) {
    const std::uint64_t stamp = in_->lines[number % kLines].stamp.load(std::memory_order_acquire);
    if (static_cast<std::uint32_t>(stamp) != number + 1) break;
    read_ack(static_cast<std::uint32_t>(stamp >> 32));
  }
}

void Channel::drop_returned() {
  refresh_ack();
  while (!lent_.empty() && reached(acked_, lent_.front().line + 1)) lent_.pop();
}

// Ring space is handed out in one piece; what is left before the wrap is skipped when it is too short.
bool Channel::ring_room(std::size_t bytes, std::uint64_t& at) {
  const std::uint64_t offset = ring_head_ & (ring_bytes_ - 1);
  at = offset + bytes <= ring_bytes_ ? ring_head_ : ring_head_ + ring_bytes_ - offset;
  if (at + bytes - ring_tail_ > ring_bytes_) refresh_ack();
  if (at + bytes - ring_tail_ > ring_bytes_) return false;
  if (!ring_claimed_) {
    theirs_->claim(out_offset_ + kLaneHeadBytes, ring_bytes_);
    ring_claimed_ = true;
  }
  return true;
}

inline void Channel::announce(Line& line, const Tag& tag, LineKind kind, std::uint64_t total) {
  line.tag[0] = tag.word[0];
  line.tag[1] = tag.word[1];
  line.kind_and_total.store((static_cast<std::uint64_t>(kind) << 48) | total, std::memory_order_relaxed);
  ring_end_[line_out_ % kLines] = ring_head_;
  if (kind != LineKind::inside) {
    const bool along = waiting_post_.message != 0 && waiting_tag_ == tag;
    line.post = along ? std::exchange(waiting_post_, PostedAt{}) : PostedAt{};
  }
  ++line_out_;
  line.stamp.store((static_cast<std::uint64_t>(line_in_) << 32) | line_out_, std::memory_order_release);
  acknowledged_ = line_in_;
  peer_waits_ = false;
  notify();
}

// Where the peer wants the message, or nullptr where it has not said.
std::byte* Channel::posted_for(std::uint64_t message, std::size_t bytes, const Tag& tag) {
  PostedAt posted = posts_in_[message % kPosts];
  if (posted.message != message + 1) {
    const Post& post = in_->posts[message % kPosts];
    if (post.stamp.load(std::memory_order_acquire) != message + 1) return nullptr;
    if (tag_of(post.tag) != tag) throw TagMismatch{peer_, tag, tag_of(post.tag)};
    posted = post.post;
  }
  throw_if_withdrawn();
  if (posted.bytes != bytes) throw LengthMismatch{peer_, bytes, posted.bytes};
  std::byte* const at = posted.at < kSymmetricOffset ? nullptr : theirs_->at(posted.at, bytes);
  if (at == nullptr) throw_makes_no_sense("it wants a message outside of its symmetric memory");
  return at;
}

// Symmetric memory is lent though the peer may have said where it wants the message: who copies should be the same each
// time, for the lines of what is copied to stay with that core.
bool Channel::is_lent(const std::byte* data, std::size_t bytes, std::uint64_t& at) const {
  return bytes >= kCopyBelowBytes && transport_.is_symmetric(data, bytes, at);
}

inline bool Channel::push_inside(const Tag& tag, const std::byte* data, std::size_t bytes) {
  if (!connect() || !room_for_line()) return false;
  Line& line = next_line();
  if (bytes != 0) std::memcpy(line.inside, data, bytes);
  announce(line, tag, LineKind::inside, bytes);
  ++pushed_;
  return true;
}

bool Channel::push(Outgoing& message) {
  if (message.bytes <= kInlineBytes) return push_inside(message.tag, message.data, message.bytes);
  if (!connect()) return false;
  if (message.done == 0) {
    if (!room_for_line()) return false;
    std::uint64_t at;
    const bool lent = is_lent(message.data, message.bytes, at);
    std::byte* const posted = lent ? nullptr : posted_for(pushed_, message.bytes, message.tag);
    if (posted != nullptr) {
      copy_bytes(posted, message.data, message.bytes);
      announce(next_line(), message.tag, LineKind::delivered, message.bytes);
    } else if (lent) {
      lent_.push({pushed_, line_out_});
      Line& line = next_line();
      line.at = at;
      line.bytes = message.bytes;
      announce(line, message.tag, LineKind::lent, message.bytes);
    }
    if (lent || posted != nullptr) {
      ++pushed_;
      return true;
    }
  }
  while (message.done < message.bytes) {
    const std::size_t bytes = std::min(kFragmentBytes, message.bytes - message.done);
    std::uint64_t at;
    if (!room_for_line() || !ring_room(bytes, at)) return false;
    ring_writer_.copy(out_->ring + (at & (ring_bytes_ - 1)), message.data + message.done, bytes);
    ring_head_ = at + whole_lines(bytes);
    Line& line = next_line();
    line.at = at & (ring_bytes_ - 1);
    line.bytes = bytes;
    announce(line, message.tag, LineKind::ring, message.bytes);
    message.done += bytes;
  }
  ++pushed_;
  return true;
}

void Channel::send(const Tag& tag, const std::byte* data, std::size_t bytes) {
  ++messages_out_;
  if (bytes <= kInlineBytes && outgoing_.empty() && push_inside(tag, data, bytes)) return;
  Outgoing message{tag, data, bytes, 0};
  if (!outgoing_.empty() || !push(message)) outgoing_.push(message);
}

std::uint64_t Channel::sent() {
  if (!outgoing_.empty()) progress();
  if (lent_.empty() && outgoing_.empty()) return pushed_;
  const bool gone = who_ != nullptr && who_->gone.load(std::memory_order_acquire);
  drop_returned();
  if (gone && !(lent_.empty() && outgoing_.empty())) throw_gone();
  return lent_.empty() ? pushed_ : lent_.front().message;
}

std::byte* Channel::reserve(const Tag& tag, std::size_t bytes, const std::byte* source) {
  if (bytes <= kInlineBytes || !outgoing_.empty() || !connect() || !room_for_line()) return nullptr;
  std::uint64_t at;
  if (source != nullptr && is_lent(source, bytes, at)) return nullptr;
  reserved_bytes_ = bytes;
  if (std::byte* const posted = posted_for(messages_out_, bytes, tag)) {
    reserved_ = LineKind::delivered;
    return posted;
  }
  if (bytes > kFragmentBytes || ring_writer_.prefers_copy(bytes) || !ring_room(bytes, reserved_at_)) return nullptr;
  reserved_ = LineKind::ring;
  return out_->ring + (reserved_at_ & (ring_bytes_ - 1));
}

void Channel::commit(const Tag& tag) {
  Line& line = next_line();
  if (reserved_ == LineKind::ring) {
    line.at = reserved_at_ & (ring_bytes_ - 1);
    line.bytes = reserved_bytes_;
    ring_head_ = reserved_at_ + whole_lines(reserved_bytes_);
  }
  announce(line, tag, reserved_, reserved_bytes_);
  ++messages_out_;
  ++pushed_;
}

void Channel::check_reserved() {
  if (reserved_ == LineKind::delivered) throw_if_withdrawn();
}

}  // namespace tutti::shm
