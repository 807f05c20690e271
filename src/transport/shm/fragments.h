// What is copied for the peer, a fragment at a time: into space that this rank has read (Kept), or its ring. A fragment
// is announced by a line of its own.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "transport/shm/distance.h"
#include "transport/shm/lines.h"
#include "transport/shm/ring.h"
#include "types/tag.h"

namespace tutti::internal::shm {

class Fragments {
 public:
  explicit Fragments(Lines& lines) : lines_(lines) {}

  // The most bytes that a fragment has.
  std::size_t most_bytes() const { return fragment_bytes(lines_.ring().bytes()); }
  // How many the next one should have, of a message of `total` bytes of which `left` have not been sent yet.
  std::size_t next_bytes(std::size_t left, std::size_t total) const {
    // A shorter ring: the ranks share processors, or are more than two. There short fragments gain nothing, or have not
    // been measured.
    const bool is_one_way =
        lines_.ring().bytes() == kMaxRingBytes && total <= kOneWayTotal && lines_.acks().kept().only_sends();
    return std::min({left, most_bytes(), is_one_way ? kOneWayBytes : kFragmentBytes});
  }

  // Whether the ring has memory. If not, prepare_ring() and find_room() see to that, and may throw Error{system}.
  bool has_ring() const { return has_ring_; }
  void prepare_ring() {
    if (!has_ring_) lines_.lanes().claim_out_ring();
    has_ring_ = true;
  }
  // Finds room for the next fragment, of `bytes`.
  bool find_room(std::size_t bytes);
  std::byte* room() const { return room_.at; }
  LineKind kind() const { return room_.kind; }         // ring, or reused: in the ring that the peer writes to
  bool room_is_read() const { return room_.is_read; }  // this rank has read what was there

  // Before `bytes` are written to room that this rank has not read, by vectors.
  void look(std::size_t bytes) { distance_.look(lines_.next().stamp, bytes); }
  bool is_far() const { return distance_.is_far(); }

  // Copies a fragment to the room, and publishes the next line: `bytes` of a message of `total` bytes.
  void write(const Tag& tag, const std::byte* data, std::size_t bytes, std::uint64_t total);
  // Only publishes it: the fragment is there.
  void announce(const Tag& tag, std::size_t bytes, std::uint64_t total);

 private:
  struct Room {
    std::byte* at = nullptr;
    LineKind kind = LineKind::ring;
    Space space;  // of the ring
    bool is_read = false;
  };

  Lines& lines_;
  Distance distance_;
  bool has_ring_ = false;
  Room room_;
};

}  // namespace tutti::internal::shm
