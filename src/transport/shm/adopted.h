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
#include <memory>
#include <mutex>
#include <vector>

namespace tutti::internal::shm {

// A segment's adopted memory. Thread-safe.
class Adopted {
 public:
  // Whether [data, data + bytes) is adopted, and then its offset in the segment.
  bool holds(const std::byte* data, std::size_t bytes, std::uint64_t& offset) const {
    return count_.load(std::memory_order_relaxed) != 0 && finds(data, bytes, offset);
  }
  // Before a peer is told of a message that lies there. Does nothing for other memory.
  void show(const std::byte* data, std::size_t bytes) const {
    if (count_.load(std::memory_order_relaxed) != 0) copy_edges(data, bytes);
  }
  // A peer has written a message for [data, data + bytes) to `there`, the place of that memory in the segment's mapping
  // when the peer was told. Does nothing for memory that has no other place.
  void take(std::byte* data, std::size_t bytes, const std::byte* there) const {
    if (there != data) copy_back(data, bytes, there);
  }

  // All of it becomes private memory again, with the contents that it has now. What peers still write to its place in
  // the segment arrives with take().
  // `fd`: the segment's file.
  void give_all_back(int fd) noexcept;

  // For whoever adopts (adoption.h).
  struct Part {
    std::byte* data;  // the caller's
    std::size_t bytes;
    std::byte *first, *last;  // [first, last): the whole pages, which are shared
    std::byte* here;          // where `data` lies in the segment's mapping
    std::uint64_t offset;     // and in the segment
  };
  void add(const Part& part);
  bool remove(const std::byte* data);  // false: it was given back already
  // The caller may have freed the memory, and something else may be there by now: that is left alone. False: the system
  // has no memory for the copy, and the pages stay shared.
  static bool make_private(int fd, const Part& part) noexcept;

 private:
  const Part* part_with(const std::byte* data, std::size_t bytes) const;
  bool finds(const std::byte* data, std::size_t bytes, std::uint64_t& offset) const;
  void copy_edges(const std::byte* data, std::size_t bytes) const;
  void copy_back(std::byte* data, std::size_t bytes, const std::byte* there) const;

  std::atomic<std::size_t> count_{0};
  mutable std::mutex mutex_;  // guards parts_
  std::vector<Part> parts_;   // by address; none overlaps another
};

}  // namespace tutti::internal::shm
