// The space of the ring that this rank writes to: handed out in order, and free again once the peer has consumed the
// line that announced it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "transport/shm/lane.h"

namespace tutti::internal::shm {

// Positions count bytes from 0 for ever; offset() is where they lie.
class Ring {
 public:
  explicit Ring(std::size_t bytes) : bytes_(bytes) {}  // a power of two

  std::size_t bytes() const { return bytes_; }
  std::size_t offset(std::uint64_t at) const { return at & (bytes_ - 1); }

  // Whether there is room for `bytes` in one piece, and then the position. What is left before the wrap is skipped
  // where it is too short. The peer has consumed all lines below number `acked`.
  bool find(std::size_t bytes, std::uint32_t acked, std::uint64_t& at) const {
    at = offset(head_) + bytes <= bytes_ ? head_ : head_ + bytes_ - offset(head_);
    return at + bytes - ends_[(acked - 1) % ends_.size()] <= bytes_;
  }
  void take(std::uint64_t at, std::size_t bytes) { head_ = at + (bytes + 63) / 64 * 64; }

  // All that has been taken is free again once line number `line` has been consumed. To be called for each line.
  void end(std::uint32_t line) { ends_[line % ends_.size()] = head_; }

 private:
  const std::size_t bytes_;
  std::uint64_t head_ = 0;
  // By line: the kLines that may not have been consumed yet, and the last one that has been.
  std::array<std::uint64_t, 2 * kLines> ends_{};
};

}  // namespace tutti::internal::shm
