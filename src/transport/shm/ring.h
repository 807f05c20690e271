// The ring that this rank writes fragments to. The space of a fragment is free again once the peer has consumed the
// line that announced it; or, where the peer has written a fragment of its own there, once this rank has read that.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "transport/shm/fifo.h"
#include "transport/shm/ring_bytes.h"

namespace tutti::internal::shm {

struct Space {  // [begin, end) of a ring, in bytes
  std::uint32_t begin = 0, end = 0;
  std::size_t bytes() const { return end - begin; }
};

class Ring {
 public:
  explicit Ring(RingBytes bytes) : bytes_(bytes), gap_end_(static_cast<std::uint32_t>(bytes.one_way)) {}

  RingBytes bytes() const { return bytes_; }

  // Room for `bytes` in one piece: what has come back, wherever it lies; else the next free space in the order of the
  // ring, within its first `used` bytes; or the first, if it `is_packed`. `lines`: of this rank.
  bool find(std::size_t bytes, const Unread& lines, std::size_t used, bool is_packed, Space& room);
  // Whether the room that find() has given is such, which this rank has read.
  bool has_spare() const { return !spare_.empty(); }
  // Line number `line`, the next one, announces the room that find() has given.
  void take(const Space& room, std::uint32_t line);

  // The peer has written where line number `line` announced a fragment. An empty space where that cannot be.
  void lend(std::uint32_t line);
  // The first of those not yet taken back; an empty one where there is none.
  Space lent() const { return lent_.empty() ? Space{} : lent_.front(); }
  // This rank has read what the peer has written there, in lent(), which is not empty. keeps: it is for this rank's
  // next fragment.
  void take_back(bool keeps) {
    if (keeps) spare_.push(lent_.front());
    lent_.pop();
  }

 private:
  struct Announced {
    std::uint32_t line = 0;
    Space space;
  };

  bool next_gap(std::uint32_t bytes, const Unread& lines, std::uint32_t used);
  template <class Visit>
  void visit_taken(const Unread& lines, const Visit& visit) const;

  const RingBytes bytes_;
  std::uint32_t head_ = 0, gap_end_;           // [head_, gap_end_) is free
  std::array<Announced, kLines> announced_{};  // by line; those that the peer has consumed are out of date
  Fifo<Space> lent_{kLines}, spare_;
};

}  // namespace tutti::internal::shm
