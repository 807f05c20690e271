#include "transport/shm/resend.h"

#include <algorithm>

#include "memory/copy.h"

namespace tutti::internal::shm {

Resend::~Resend() {
  if (memory_ != 0) lines_.lanes().own().free(memory_, kFragmentBytes);
}

void Resend::show_next(const Lent& first) {
  LanePair& lanes = lines_.lanes();
  const Decline& decline = lanes.in().decline;
  if (line_ != declined(first.line)) {
    line_ = declined(first.line);
    shown_ = decline.from;
    if (shown_ > first.bytes) lanes.throw_makes_no_sense("it says that it has more of a message than there is");
  }
  if (decline.taken.load(std::memory_order_acquire) != pieces_ || shown_ == first.bytes) return;
  if (memory_ == 0) memory_ = lanes.own().allocate(kFragmentBytes);
  const std::size_t bytes = std::min(kFragmentBytes, first.bytes - shown_);
  copy_bytes(lanes.own().at(memory_), first.data + shown_, bytes);
  shown_ += bytes;
  Piece& piece = lanes.out().piece;
  piece.at = memory_;
  piece.bytes = bytes;
  piece.number.store(++pieces_, std::memory_order_release);
  lanes.notify();
}

}  // namespace tutti::internal::shm
