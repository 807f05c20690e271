// What a sender does about a message that its peer was to read in private memory, and cannot (Decline): it shows the
// message piece by piece in symmetric memory. Slow, and seldom: a channel usually declines once, if at all.
#pragma once

#include <cstddef>
#include <cstdint>

#include "transport/shm/fifo.h"
#include "transport/shm/lines.h"

namespace tutti::internal::shm {

// A message that is announced in place; it comes back with the acknowledgement of its line.
struct Lent {
  std::uint64_t message;
  std::uint32_t line;
  const std::byte* data;
  std::size_t bytes;
  bool readable;  // in private memory
};

class Resend {
 public:
  explicit Resend(Lines& lines) : lines_(lines) {}
  ~Resend();
  Resend(const Resend&) = delete;
  Resend& operator=(const Resend&) = delete;

  // Whether the peer has declined the first message of `lent`, those that it has not acknowledged. Then shows the next
  // piece of it, if the peer is done with the one before.
  bool answer(const Fifo<Lent>& lent) {
    if (lent.empty()) return false;
    const std::uint64_t line = lines_.lanes().in().decline.line.load(std::memory_order_acquire);
    if (line != declined(lent.front().line)) return false;
    show_next(lent.front());
    return true;
  }

 private:
  void show_next(const Lent& first);

  Lines& lines_;
  std::uint64_t memory_ = 0;  // of one piece, in this rank's segment; 0: none yet
  std::uint64_t line_ = 0;    // as in Decline, of the message at hand
  std::size_t shown_ = 0;     // of it, bytes that have been shown, or were read before
  std::uint32_t pieces_ = 0;  // the number of the last piece
};

}  // namespace tutti::internal::shm
