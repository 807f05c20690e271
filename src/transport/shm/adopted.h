// Memory of the caller that has become a part of this rank's segment, in place: the same address, the same contents.
//
// The system shares whole pages. Other things may lie on the first and the last page of a buffer, so where the buffer
// does not fill these, they stay private. The segment has a page in the place of each all the same, so that a peer
// finds the buffer in one piece there. What a peer is to read on such a page is copied there before (show), and what a
// peer has written there is copied back (take).
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <vector>

#include "base/address_space.h"

namespace tutti::internal::shm {

// Where memory of a rank lies in its segment. Of [data, data + bytes), the first `before` and the last `behind` bytes
// are on pages that are not shared.
struct Place {
  std::uint64_t offset = 0;  // 0: nowhere
  std::uint16_t before = 0, behind = 0;
};

// A segment's adopted memory. Thread-safe.
class Adopted {
 public:
  // Whether [data, data + bytes) is adopted, and then its place.
  bool holds(const std::byte* data, std::size_t bytes, Place& place) const {
    return count_.load(std::memory_order_relaxed) != 0 && finds(data, bytes, place);
  }

  // Before a peer is told of a message at `place`, which is `there` in the segment's mapping.
  static void show(const std::byte* data, std::size_t bytes, const Place& place, std::byte* there) {
    if ((place.before | place.behind) != 0) copy_edges(there, data, bytes, place);
  }
  // Once a peer has written a message there that is for [data, data + bytes).
  void take(std::byte* data, std::size_t bytes, const Place& place, const std::byte* there) const {
    if ((place.before | place.behind) != 0) copy_edges(data, there, bytes, place);
    if (has_given_back_.load(std::memory_order_relaxed) && there != data) take_late(data, bytes, there);
  }

  // All of it becomes private memory again, with the contents that it has now; no store of another thread is lost. What
  // peers still write to its place in the segment arrives with take(). `fd`: the segment's file.
  void give_all_back(int fd) noexcept;

  // For whoever adopts (adoption.h).
  struct Part {
    std::byte* data;  // the caller's
    std::size_t bytes;
    std::byte *first, *last;  // [first, last): the whole pages, which are shared
    std::uint64_t offset;     // of `data` in the segment
  };
  void add(const Part& part);
  bool remove(const Part& part);  // false: it was given back already
  // As AddressSpace::mapped_in().
  std::optional<std::vector<MappedRange>> mapped_in(const std::byte* first, const std::byte* last);

 private:
  bool finds(const std::byte* data, std::size_t bytes, Place& place) const;
  static void copy_edges(std::byte* to, const std::byte* from, std::size_t bytes, const Place& place);
  void take_late(std::byte* data, std::size_t bytes, const std::byte* there) const;

  std::atomic<std::size_t> count_{0};
  std::atomic<bool> has_given_back_{false};
  mutable std::mutex mutex_;  // guards the two behind it
  std::vector<Part> parts_;   // by address; their whole pages do not overlap
  std::optional<AddressSpace> space_;
};

}  // namespace tutti::internal::shm
