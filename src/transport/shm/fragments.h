// What is copied for the peer, a fragment at a time: into space that this rank has read (Kept), or its ring. A fragment
// is announced by a line of its own.
#pragma once

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

  // The most that one has.
  std::size_t most_bytes() const { return fragment_bytes(lines_.ring().bytes()); }

  // Finds room for the next fragment, of `bytes`. The calls behind it are about that room.
  bool find_room(std::size_t bytes);
  std::byte* room() const { return room_.at; }
  // This rank has read what was there.
  bool room_is_read() const { return room_.is_read; }
  LineKind kind() const { return room_.kind; }  // ring, or reused: in the ring that the peer writes to
  // As of Distance. look(): before `bytes` are written there by vectors.
  bool is_far() const { return distance_.is_far(); }
  void look(std::size_t bytes) { distance_.look(lines_.next().stamp, bytes); }

  // Copies a fragment there, and publishes the next line: `bytes` of a message of `total` bytes.
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
  bool ring_claimed_ = false;
  Room room_;
};

}  // namespace tutti::internal::shm
