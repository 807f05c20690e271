// A segment's file as a process maps it: an extent, one slot or several in a row, when it first uses it.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "transport/shm/segment_layout.h"

namespace tutti::internal::shm {

// Throws Error{system}: `what`, and the system's word for errno.
[[noreturn]] void throw_system_error(const std::string& what);

class Mapping {
 public:
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;

  int fd() const { return fd_; }

  // Where the byte at `offset` lies, and what was handed out with it. Throws Error{system} where it cannot be mapped,
  // {refused} where the owner has not handed it out. Thread-safe.
  std::byte* at(std::uint64_t offset) {
    const std::uint64_t slot = offset / kSlotBytes;
    const std::uintptr_t start = slot < kSlots ? starts_[slot].load(std::memory_order_acquire) : 0;
    return reinterpret_cast<std::byte*>((start != 0 ? start : map_slot(slot)) + offset);
  }

  // Where [offset, offset + bytes) lies, for what a peer says: nullptr where the file does not have all of it, which
  // would be a SIGBUS, or not in one piece, which would be anybody's memory. Throws as the other.
  std::byte* at(std::uint64_t offset, std::uint64_t bytes) {
    if (bytes == 0 || !file_has(offset, bytes)) return nullptr;
    std::byte* const first = at(offset);
    return at(offset + bytes - 1) == first + (bytes - 1) ? first : nullptr;
  }
  bool file_has(std::uint64_t offset, std::uint64_t bytes) const {
    const std::uint64_t size = known_bytes_.load(std::memory_order_relaxed);
    return (offset <= size && bytes <= size - offset) || file_has_by_now(offset, bytes);
  }

  // Backs [offset, offset + bytes) with memory. Throws Error{system} that says how much was asked for.
  void claim(std::size_t offset, std::size_t bytes) const;
  // Gives the memory behind it back to the system; it reads as zero after the next claim.
  void unclaim(std::size_t offset, std::size_t bytes) const noexcept;

  // Whether [data, data + bytes) is symmetric memory, and then its offset. Thread-safe, without a lock.
  bool is_symmetric(const void* data, std::size_t bytes, std::uint64_t& offset) const;
  // Calls this for what is mapped and will be.
  void keep_near(std::function<void(std::byte*, std::size_t)> place);

  // Owner only: [offset, offset + bytes), whole slots of symmetric memory, are mapped in one piece by all.
  void publish(std::uint64_t offset, std::size_t bytes);

 protected:
  explicit Mapping(int fd) : fd_(fd) {}  // takes the fd
  ~Mapping();

 private:
  struct Extent {
    std::uint64_t offset;
    std::size_t bytes;
    std::byte* data;
  };
  using Extents = std::vector<Extent>;  // by address

  bool file_has_by_now(std::uint64_t offset, std::uint64_t bytes) const;
  std::span<std::atomic<std::uint32_t>> extents();
  Extent extent_of(std::uint64_t slot);
  const Extents& mapped() const;
  std::uintptr_t map_slot(std::uint64_t slot);

  const int fd_;
  std::array<std::atomic<std::uintptr_t>, kSlots> starts_{};  // where offset 0 would be, were all in one piece with it
  mutable std::atomic<std::uint64_t> known_bytes_{0};         // the file had so many when last asked; it only grows
  std::mutex mutex_;                                          // guards those behind it
  std::vector<std::unique_ptr<const Extents>> versions_;      // all there were, as a look may be under way: few
  std::atomic<const Extents*> mapped_{nullptr};               // the last of them
  std::function<void(std::byte*, std::size_t)> place_;
};

}  // namespace tutti::internal::shm
