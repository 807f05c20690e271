#include "transport/shm/channel.h"

#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <utility>

namespace tutti::shm {
namespace {

constexpr std::uint64_t kTotalMask = (std::uint64_t{1} << 48) - 1;
constexpr std::uint32_t kMostLag = 1u << 30;      // lines
constexpr std::size_t kAckAtOnceBytes = 4 << 10;  // of the ring: the sender may be waiting for room

Tag tag_of(const std::uint64_t (&word)[2]) { return Tag{{word[0], word[1]}}; }
LineKind kind_of(const Line& line) {
  return static_cast<LineKind>(line.kind_and_total.load(std::memory_order_relaxed) >> 48);
}
std::size_t total_of(const Line& line) { return line.kind_and_total.load(std::memory_order_relaxed) & kTotalMask; }
std::size_t whole_lines(std::size_t bytes) { return (bytes + 63) / 64 * 64; }
bool reached(std::uint32_t count, std::uint32_t target) { return static_cast<std::int32_t>(count - target) >= 0; }

}  // namespace

Channel::Channel(Transport& transport, std::uint64_t communicator, int rank, int peer)
    : transport_(transport),
      communicator_(communicator),
      rank_(rank),
      peer_(peer),
      ring_bytes_(transport.ring_bytes()) {
  in_offset_ = transport_.own().add_lane(communicator, peer, sizeof(Lane), kLaneHeadBytes);
  in_ = reinterpret_cast<Lane*>(transport_.own().base() + in_offset_);
  in_->ack.store(kFirstLine, std::memory_order_relaxed);  // the peer writes there once it has consumed lines of mine
}

Channel::~Channel() { transport_.own().remove_lane(communicator_, peer_, sizeof(Lane)); }

// The peer's end may be made later than this one: looked for again on every use until it is there.
bool Channel::connect() {
  if (out_ != nullptr) return true;
  if (who_ == nullptr) who_ = transport_.find(peer_);
  if (who_ == nullptr) return false;
  theirs_ = who_->segment.get();
  const std::uint64_t offset = theirs_->find_lane(communicator_, rank_);
  if (offset == 0) return false;
  out_ = reinterpret_cast<Lane*>(theirs_->base() + offset);
  return true;
}

// The owner of the memory just written to may be asleep. No fence here: a rank that goes to sleep makes every running
// peer pass one first (Transport::before_sleep), which keeps this path free of a full fence a message.
void Channel::notify() {
  std::atomic_signal_fence(std::memory_order_seq_cst);
  if (theirs_->header().sleeping.load(std::memory_order_relaxed) == 0) return;
  const std::uint64_t one = 1;
  [[maybe_unused]] const auto ignored = ::write(who_->bell, &one, sizeof one);
}

void Channel::throw_gone() const { throw ChannelClosed{peer_, "its end of the shared memory is closed"}; }

// --- sending
// -----------------------------------------------------------------------------------------------------------

void Channel::read_ack(std::uint32_t ack) {
  // What lies outside the window of lines not yet acknowledged is old: the word by itself may lag far behind the
  // stamps.
  const std::uint32_t ahead = ack - acked_;
  if (ahead == 0 || ahead > line_out_ - acked_) return;
  acked_ = ack;
  ring_tail_ = std::max(ring_tail_, ring_end_[(acked_ - 1) % kLines]);
}

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

bool Channel::room_for_line() {
  if (line_out_ - acked_ < kLines) return true;
  refresh_ack();
  return line_out_ - acked_ < kLines;
}

// Ring space is handed out in one piece; what is left before the wrap is skipped when it is too short.
bool Channel::ring_room(std::size_t bytes, std::uint64_t& at) {
  const std::uint64_t offset = ring_head_ & (ring_bytes_ - 1);
  at = offset + bytes <= ring_bytes_ ? ring_head_ : ring_head_ + ring_bytes_ - offset;
  if (at + bytes - ring_tail_ > ring_bytes_) refresh_ack();
  if (at + bytes - ring_tail_ > ring_bytes_) return false;
  if (!ring_claimed_) {
    theirs_->claim(static_cast<std::size_t>(out_->ring - theirs_->base()), ring_bytes_);
    ring_claimed_ = true;
  }
  return true;
}

Line& Channel::next_line() { return out_->lines[line_out_ % kLines]; }

void Channel::announce(Line& line, const Tag& tag, LineKind kind, std::uint64_t total) {
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
  return theirs_->base() + posted.at;
}

void Channel::throw_if_withdrawn() const {
  if (in_->withdrawn.load(std::memory_order_relaxed) != 0)
    throw ChannelClosed{peer_, "it gave the call up and took its memory back"};
}

// Symmetric memory is lent though the peer may have said where it wants the message: who copies should be the same each
// time, for the lines of what is copied to stay with that core.
bool Channel::is_lent(const std::byte* data, std::size_t bytes, Use use, std::uint64_t& at) const {
  return bytes >= (use == Use::keep ? kCopyKeptBelowBytes : kCopyBelowBytes) &&
         transport_.is_symmetric(data, bytes, at);
}

bool Channel::push(Outgoing& message) {
  if (!connect()) return false;
  if (message.bytes <= kInlineBytes) {
    if (!room_for_line()) return false;
    Line& line = next_line();
    if (message.bytes != 0) std::memcpy(line.inside, message.data, message.bytes);
    announce(line, message.tag, LineKind::inside, message.bytes);
    ++pushed_;
    return true;
  }
  if (message.done == 0) {
    if (!room_for_line()) return false;
    std::uint64_t at;
    const bool lent = is_lent(message.data, message.bytes, message.use, at);
    std::byte* const posted = lent ? nullptr : posted_for(pushed_, message.bytes, message.tag);
    if (posted != nullptr) {
      std::memcpy(posted, message.data, message.bytes);
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

void Channel::send(const Tag& tag, const std::byte* data, std::size_t bytes, Use use) {
  ++messages_out_;
  Outgoing message{tag, data, bytes, 0, use};
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
  if (source != nullptr && is_lent(source, bytes, Use::keep, at)) return nullptr;
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

// --- receiving
// ---------------------------------------------------------------------------------------------------------

const Line* Channel::arrived() {
  const Line& line = in_->lines[line_in_ % kLines];
  const std::uint64_t stamp = line.stamp.load(std::memory_order_acquire);
  if (static_cast<std::uint32_t>(stamp) != line_in_ + 1) return nullptr;
  read_ack(static_cast<std::uint32_t>(stamp >> 32));
  if (noted_ != line_in_ + 1) {
    noted_ = line_in_ + 1;
    if (kind_of(line) != LineKind::inside && line.post.message != 0)
      posts_in_[(line.post.message - 1) % kPosts] = line.post;
  }
  return &line;
}

// For a line that somebody needs. What a peer wrote, it wrote before it went; it may also have closed its end of this
// channel by now, or this rank not have looked for it yet. Its segment was handed over before it wrote anything.
const Line* Channel::awaited() {
  const Line* line = arrived();
  if (theirs_ == nullptr) connect();
  if (line != nullptr || who_ == nullptr || !who_->gone.load(std::memory_order_acquire)) return line;
  line = arrived();
  if (line == nullptr) throw_gone();
  return line;
}

const Line* Channel::checked(const Tag& tag, std::size_t bytes) {
  const Line* line = awaited();
  if (line == nullptr) return nullptr;
  if (tag_of(line->tag) != tag) throw TagMismatch{peer_, tag, tag_of(line->tag)};
  if (total_of(*line) != bytes) throw LengthMismatch{peer_, bytes, total_of(*line)};
  return line;
}

std::span<const std::byte> Channel::payload(const Line& line) const {
  switch (kind_of(line)) {
    case LineKind::inside: return {line.inside, total_of(line)};
    case LineKind::ring: return {in_->ring + line.at, line.bytes};
    case LineKind::lent: throw_if_withdrawn(); return {theirs_->base() + line.at, line.bytes};
    case LineKind::delivered: break;
  }
  return {};
}

void Channel::consume_line(bool peer_waits) {
  ++line_in_;
  peer_waits_ |= peer_waits;
}

void Channel::receive(std::uint64_t message, const Tag& tag, std::byte* data, std::size_t bytes) {
  wanted_.push({message, tag, data, bytes, 0});
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
      const auto bytes = payload(*line);
      if (!bytes.empty()) std::memcpy(want.data + want.done, bytes.data(), bytes.size());
      want.done += bytes.size();
    }
    consume_line(kind == LineKind::lent || (kind == LineKind::ring && line->bytes >= kAckAtOnceBytes));
    moved = true;
    if (want.done == want.bytes) {
      wanted_.pop();
      ++received_;
      ++messages_done_;
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
  fill();
  if (!wanted_.empty() && wanted_.front().message == messages_done_) return false;
  const Line* line = viewing_ ? awaited() : checked(tag, bytes);
  if (line == nullptr) return false;
  if (!viewing_) {
    viewing_ = true;
    view_left_ = bytes;
    view_at_ = 0;
  }
  here = payload(*line).subspan(view_at_);
  return true;
}

void Channel::release(std::size_t bytes) {
  const Line& line = in_->lines[line_in_ % kLines];
  const LineKind kind = kind_of(line);
  view_at_ += bytes;
  view_left_ -= bytes;
  if (view_at_ == payload(line).size()) {
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

// --- both
// --------------------------------------------------------------------------------------------------------------

bool Channel::progress() {
  bool moved = false;
  while (!outgoing_.empty()) {
    const std::size_t before = outgoing_.front().done;
    const bool whole = push(outgoing_.front());
    moved |= whole || outgoing_.front().done != before;
    if (!whole) break;
    outgoing_.pop();
  }
  return fill() || moved;
}

// Acknowledgements travel with the next line to the peer. Alone they go when the peer waits for one, or when few lines
// are left to it; and once in a long while, so that the word cannot lag by a whole round of the counter.
void Channel::flush() {
  write_waiting_post();
  const bool lags = line_in_ - acknowledged_alone_ >= kMostLag;
  if (!lags && (line_in_ == acknowledged_ || (!peer_waits_ && line_in_ - acknowledged_ < kLines / 4))) return;
  if (!connect()) return;  // it has closed its end, and waits for nothing
  out_->ack.store(line_in_, std::memory_order_release);
  acknowledged_ = acknowledged_alone_ = line_in_;
  peer_waits_ = false;
  notify();
}

bool Channel::withdraw() {
  if (out_ == nullptr) return true;
  const Turn& turn = theirs_->header().turn;
  if (!withdrawn_in_) {
    out_->withdrawn.store(1, std::memory_order_relaxed);
    barrier_everywhere();
    withdrawn_in_ = turn.count();
  }
  if (turn.is_over(*withdrawn_in_)) return true;
  who_->look();
  return who_->gone.load(std::memory_order_relaxed);
}

bool Channel::unclaimed(Tag& tag) {
  if (!wanted_.empty() || viewing_) return false;
  const Line* line = arrived();
  if (line == nullptr) return false;
  tag = tag_of(line->tag);
  return true;
}

}  // namespace tutti::shm
