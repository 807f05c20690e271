#include "transport/shm/split.h"

#include <cerrno>

#include "memory/string_copy.h"

namespace tutti::internal::shm {

// --- sender ----------------------------------------------------------------------------------------------------------

void SplitSender::add(std::uint64_t message, const Tag& tag, const std::byte* data, std::size_t bytes) {
  Split& split = lines_.lanes().out().splits[number_ % kSplits];
  split.written.store(split_word(number_, 0, 0), std::memory_order_relaxed);
  split.taken.store(split_word(number_, 0, 0), std::memory_order_relaxed);  // announcing it publishes both
  open_.push({message, lines_.unread().written, number_, tag, data, bytes, 0, false});
  ++number_;
}

bool SplitSender::write_some() {
  for (std::size_t i = 0; i < open_.size(); ++i)
    if (!open_[i].is_done) return write_part_of(open_[i]);
  return false;
}

// The peer may not have said yet where it wants the message.
bool SplitSender::write_part_of(Open& open) {
  LanePair& lanes = lines_.lanes();
  const PostedAt posted = lines_.posts().find(open.message, open.tag, lanes.in(), lanes.peer());
  if (posted.message == 0) return false;
  const bool is_private = (posted.at & kPrivate) != 0;
  open.is_done = posted.bytes != open.bytes || (is_private && !can_write_);
  if (open.is_done) return false;
  std::byte* shared = nullptr;
  if (!is_private) {
    lanes.throw_if_withdrawn();
    shared = posted_at(lanes, posted.at, open.bytes);
  }
  Split& split = lanes.out().splits[open.number % kSplits];
  const Parts parts(open.bytes);
  std::uint64_t taken = split.taken.load(std::memory_order_relaxed);
  for (;;) {
    const std::uint32_t front = static_cast<std::uint32_t>(taken) >> 16;
    open.is_done = taken != split_word(open.number, front, open.written) || front + open.written >= parts.count();
    if (open.is_done) return false;
    if (split.taken.compare_exchange_weak(taken, taken + 1, std::memory_order_relaxed)) break;
  }
  const std::uint32_t part = parts.count() - open.written - 1;
  const std::size_t begin = parts.begin(part);
  int failure = 0;
  if (is_private) {
    failure = lanes.who()->memory.write(open.data + begin, (posted.at & ~kPrivate) + begin, parts.bytes(part),
                                        lanes.in().withdrawn);
  } else {
    copy_to_peer(shared + begin, open.data + begin, parts.bytes(part));
  }
  if (failure == 0) {
    split.written.store(split_word(open.number, 0, ++open.written), std::memory_order_release);
  } else {
    // The receiver may as well do all else: what cut this write may go on, such as a debugger. EFAULT is about the
    // memory of this message alone, and EAGAIN about this moment. All else is about all messages.
    open.is_done = true;
    if (failure != EFAULT && failure != EAGAIN && failure != ECANCELED) can_write_ = false;
    split.taken.fetch_sub(1, std::memory_order_release);
  }
  lanes.notify();
  if (failure == ECANCELED) lanes.throw_if_withdrawn();
  return true;
}

// --- receiver --------------------------------------------------------------------------------------------------------

std::uint32_t SplitReceiver::back_of(std::uint64_t word, std::uint32_t parts) const {
  const std::uint32_t back = static_cast<std::uint32_t>(word) & 0xffff;
  if (split_word(number_, taken_, back) != word || back > parts - taken_)
    lines_.lanes().throw_makes_no_sense("it has taken other parts of a message than there are");
  return back;
}

// Up to `most` parts. Whether there were any.
bool SplitReceiver::take_parts(std::uint32_t parts, std::uint32_t most) {
  std::uint64_t word = split().taken.load(std::memory_order_relaxed);
  for (;;) {
    const std::uint32_t left = parts - taken_ - back_of(word, parts), now = std::min(left, most);
    if (now == 0) return false;
    if (!split().taken.compare_exchange_weak(word, word + (std::uint64_t{now} << 16), std::memory_order_relaxed))
      continue;
    taken_ += now;
    return true;
  }
}

SplitReceiver::Part SplitReceiver::take(std::size_t bytes) {
  const Parts parts(bytes);
  if (!take_parts(parts.count(), 1)) return {};
  return {parts.begin(taken_ - 1), parts.bytes(taken_ - 1)};
}

void SplitReceiver::take_all(std::size_t bytes) {
  const std::uint32_t parts = Parts(bytes).count();
  take_parts(parts, parts);
}

bool SplitReceiver::is_settled(std::size_t bytes) const {
  const std::uint32_t parts = Parts(bytes).count();
  const std::uint32_t back = back_of(split().taken.load(std::memory_order_relaxed), parts);
  return taken_ + back == parts && split().written.load(std::memory_order_acquire) == split_word(number_, 0, back);
}

}  // namespace tutti::internal::shm
