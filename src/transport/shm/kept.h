// Space of the peer's ring that this rank has read and keeps for its next fragments: the peer hears of it with those.
//
// Two ranks that exchange messages so write where they have just read. Their caches have these lines, and no more than
// the messages need: plain loops that exchange 8 KiB take 0.20 us so, and 0.33 with a ring each; 64 KiB 2.15 and 2.40;
// between cores that share no cache 0.65 and 1.03, 3.3 and 4.4 (AMD EPYC, Zen 5). A rank that only reads keeps nothing.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "transport/shm/fifo.h"
#include "transport/shm/lane.h"

namespace tutti::internal::shm {

class Kept {
 public:
  // ring_bytes: while the ranks write to each other.
  explicit Kept(std::size_t ring_bytes) : most_(most_of(ring_bytes)), ring_bytes_(ring_bytes) {}

  bool empty() const { return spaces_.empty(); }
  std::uint32_t first_line() const { return spaces_.front().line; }  // whose space is kept; requires one

  bool may_keep() const { return may_keep_ > 0; }
  // Whether the last fragments have all been this rank's: more bytes than two rings have, or half of the longest ring.
  bool only_sends() const { return sent_in_a_row_ > std::min(2 * ring_bytes_, kMaxRingBytes / 2); }
  // One more fragment of this rank's has been announced: it may keep one for it.
  void sent_one(std::size_t bytes) {
    may_keep_ = std::min(may_keep_ + 1, most_);
    if (!only_sends()) sent_in_a_row_ += bytes;
  }
  // A fragment of the peer's has come.
  void peer_sent() { sent_in_a_row_ = 0; }
  // How many fragments in the peer's ring are among the lines of this rank that the peer has not read.
  std::size_t reusing(const Unread& lines);
  // Whether this rank, which has read a fragment, should keep the space.
  bool should_keep(const Unread& lines);
  // Likewise, where the space is of this rank's ring (Ring::take_back): that does not hold the peer up.
  bool should_keep_own();
  // Keeps the `bytes` at `data`, of the peer's line number `line`.
  void keep(std::uint32_t line, std::byte* data, std::size_t bytes) { spaces_.push({line, data, bytes}); }

  // The first kept space, if it has `bytes`; those that have fewer are given up. nullptr: there is none.
  std::byte* find(std::size_t bytes);
  // It stays kept, since it is being written to, until it is taken.
  void hold() { is_held_ = true; }
  bool is_held() const { return is_held_; }
  // Line number `line`, the next one, announces a fragment there. The number of the line whose space it was.
  std::uint32_t take(std::uint32_t line);
  // All that is not held.
  void give_up();

 private:
  // The peer goes on without what this rank has. If that is n pieces, each as long as a fragment, wherever they lie,
  // one of the n + 1 gaps has room for a fragment.
  static constexpr std::size_t most_of(std::size_t ring_bytes) {
    return std::min<std::size_t>(kRow / 2, (ring_bytes / fragment_bytes(ring_bytes) - 1) / 2);
  }

  struct Space {
    std::uint32_t line;
    std::byte* data;
    std::size_t bytes;
  };

  const std::size_t most_, ring_bytes_;
  std::size_t may_keep_ = 0;
  std::size_t sent_in_a_row_ = 0;  // bytes
  bool is_held_ = false;
  Fifo<Space> spaces_;
  Fifo<std::uint32_t> reusing_;  // lines of this rank that have announced fragments in the peer's ring
};

}  // namespace tutti::internal::shm
