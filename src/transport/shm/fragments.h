// What is copied for the peer, a fragment at a time: into space that this rank has read (Kept), or its ring. A fragment
// is announced by a line of its own.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "memory/between_cores.h"
#include "memory/string_copy.h"
#include "transport/shm/distance.h"
#include "transport/shm/lines.h"
#include "transport/shm/ring.h"
#include "types/tag.h"

namespace tutti::internal::shm {

class Fragments {
 public:
  explicit Fragments(Lines& lines) : lines_(lines) {}

  // The most bytes that a fragment has.
  std::size_t most_bytes() const { return fragment_bytes(lines_.ring().bytes().both_ways); }
  // How many the next one should have, of a message of `total` bytes of which `left` have not been sent yet. Short ones
  // gain nothing where ranks share processors, and have not been measured where more than two have a core each.
  std::size_t next_bytes(std::size_t left, std::size_t total) const {
    const bool are_short = is_one_way() && lines_.ring().bytes().has_short_fragments;
    return std::min({left, most_bytes(), are_short ? one_way_fragment_bytes(total) : kFragmentBytes});
  }

  // Finds room for the next fragment, of `bytes`. Throws Error{system} if the ring has no memory, and can get none.
  bool find_room(std::size_t bytes);
  // Likewise, at once: that cannot fail. Where as much of the ring as is to be used has no memory yet, there is no
  // room, and prepare_wanted_ring() sees to that. If it cannot, nothing fails yet: find_room() throws.
  bool find_room_at_once(std::size_t bytes) {
    wants_ring_ = !has_ring();
    return !wants_ring_ && find_room(bytes);
  }
  void prepare_wanted_ring();
  std::byte* room() const { return room_.at; }
  LineKind kind() const { return room_.kind; }         // ring, or reused: in the ring that the peer writes to
  bool room_is_read() const { return room_.is_read; }  // this rank has read what was there

  // Whether this rank should write a fragment of `bytes`, of a message of `total` bytes, by a string copy.
  bool by_string(std::size_t bytes, std::size_t total) const {
    return (!is_one_way() || total >= between_cores().strings_one_way_from) && copies_by_string(bytes);
  }
  // Before `bytes` that the peer will read are written by vectors, to room that this rank has not read or elsewhere;
  // also before a message of so many bytes that may be lent to the peer.
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

  bool is_one_way() const { return lines_.acks().kept().only_sends(); }
  // How much of the ring is to be used, in bytes.
  std::size_t wanted() const {
    const RingBytes ring = lines_.ring().bytes();
    return is_one_way() && can_grow_ ? ring.one_way : ring.both_ways;
  }
  bool has_ring() const { return claimed_ >= wanted(); }
  void prepare_ring();
  void claim_until(std::size_t bytes);

  Lines& lines_;
  Distance distance_;
  std::size_t claimed_ = 0;  // of the ring, bytes that have memory
  bool can_grow_ = true, wants_ring_ = false;
  Room room_;
};

}  // namespace tutti::internal::shm
