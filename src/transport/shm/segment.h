// The memory that a rank shares with the other ranks of its host: one memfd, mapped by each of them.
//
//   offset 0          header: who owns it, whether the owner sleeps
//   kDirectoryOffset  directory: which lane is whose
//   kExtentsOffset    which slots of the symmetric memory are mapped in one piece
//   kLanesOffset      lanes: what each peer writes to the owner (lane.h), handed out from the front
//   kSymmetricOffset  symmetric memory: Communicator::allocate
//
// The file is sparse and sealed against shrinking; it only grows, and space is claimed with fallocate before it is
// touched, so running out is an error and never a SIGBUS. Address space may be scarce too (ulimit -v), and few ranks
// use much of what they may: so a rank maps an extent, one slot or several in a row, when it first uses it. Mappings
// reach beyond the end of the file and stay where they are, so growing needs no remapping.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "transport/turn.h"

namespace tutti::shm {

inline constexpr std::size_t kDirectoryOffset = 4096;
inline constexpr std::size_t kDirectoryEntries = 4096;
inline constexpr std::size_t kExtentsOffset = kDirectoryOffset + kDirectoryEntries * 24;
inline constexpr std::size_t kLanesOffset = 1 << 20;
inline constexpr std::size_t kSlotBytes = 128 << 20;  // no lane crosses the border of two
inline constexpr std::size_t kSymmetricOffset = std::size_t{66} << 30;
inline constexpr std::size_t kSymmetricBytes = std::size_t{64} << 30;  // handed out at most
// Twice as many as hold that: the end of an extent that is too short for what is asked for next is left unused.
inline constexpr std::size_t kSymmetricSlots = 2 * kSymmetricBytes / kSlotBytes + 1;
inline constexpr std::size_t kSlots = kSymmetricOffset / kSlotBytes + kSymmetricSlots;
inline constexpr std::size_t kHeadBytes = kExtentsOffset + kSymmetricSlots * 4;
static_assert(kHeadBytes <= kLanesOffset);

struct alignas(64) SegmentHeader {
  std::atomic<std::uint32_t> sleeping;  // the owner is about to sleep or sleeps: ring its bell after writing to it
  alignas(64) Turn turn;                // the owner's
};

// Written by the owner: the lane at `offset` is where `peer` writes for `communicator`. offset != 0 publishes the
// entry.
struct DirectoryEntry {
  std::atomic<std::uint64_t> communicator;
  std::atomic<std::uint64_t> peer;
  std::atomic<std::uint64_t> offset;
};
static_assert(kDirectoryEntries * sizeof(DirectoryEntry) == kExtentsOffset - kDirectoryOffset);

// A segment as a process maps it, its own rank's or a peer's. Unmaps and closes in its destructor. Shared, because
// ranks that are threads of one process share its mappings.
class Segment {
 public:
  // Makes this rank's own. Throws Error{system}.
  static std::shared_ptr<Segment> create();
  // A peer's. Takes the fd. Checks that it is what it should be (size, seal); throws Error{refused}.
  static std::shared_ptr<Segment> map(int fd);
  // The one that a thread of this process made and that number() names, or nullptr if it is gone.
  static std::shared_ptr<Segment> find(std::uint64_t number);

  ~Segment();
  Segment(const Segment&) = delete;
  Segment& operator=(const Segment&) = delete;

  int fd() const { return fd_; }
  // Names a segment made in this process; 0 for one that was mapped.
  std::uint64_t number() const { return number_; }
  SegmentHeader& header() const { return *reinterpret_cast<SegmentHeader*>(base_); }
  std::span<DirectoryEntry> directory() const {
    return {reinterpret_cast<DirectoryEntry*>(base_ + kDirectoryOffset), kDirectoryEntries};
  }

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

  // --- owner only
  // The offset of a fresh, zeroed lane of `bytes` for (communicator, peer), the first claim_bytes backed. The address
  // of a removed lane is not used again: a peer may still write a last acknowledgement there.
  std::uint64_t add_lane(std::uint64_t communicator, int peer, std::size_t bytes, std::size_t claim_bytes);
  void remove_lane(std::uint64_t communicator, int peer, std::size_t bytes) noexcept;
  // A peer's lane for what `from` writes to it, or 0 if it is not there yet. Any rank. As the peer says.
  std::uint64_t find_lane(std::uint64_t communicator, int from) const;
  // Symmetric memory, in multiples of 4096.
  std::uint64_t allocate(std::size_t bytes);
  // Whether [data, data + bytes) is such memory, and then its offset. Not while allocate() runs.
  bool holds(const void* data, std::size_t bytes, std::uint64_t& offset) const;
  void free(std::uint64_t offset, std::size_t bytes) noexcept;
  // A peer may still touch this memory, now or later: what is freed from now on is left as it is.
  void keep_all() noexcept;
  // Calls this for what is mapped and will be.
  void keep_near(std::function<void(std::byte*, std::size_t)> place);

 private:
  struct Extent {
    std::uint64_t offset;
    std::size_t bytes;
    std::byte* data;
  };

  explicit Segment(int fd) : fd_(fd) {}
  bool file_has_by_now(std::uint64_t offset, std::uint64_t bytes) const;
  std::span<std::atomic<std::uint32_t>> extents() const {
    return {reinterpret_cast<std::atomic<std::uint32_t>*>(base_ + kExtentsOffset), kSymmetricSlots};
  }
  Extent extent_of(std::uint64_t slot) const;
  std::uintptr_t map_slot(std::uint64_t slot);
  void publish(const Extent& extent) const;
  void claim_in_pieces(std::size_t offset, std::size_t bytes) const;

  int fd_;
  std::uint64_t number_ = 0;
  std::byte* base_ = nullptr;                                 // of the first slot
  std::array<std::atomic<std::uintptr_t>, kSlots> starts_{};  // where offset 0 would be, were all in one piece with it
  mutable std::atomic<std::uint64_t> known_bytes_{0};         // the file had so many when last asked; it only grows
  std::mutex mapping_mutex_;                                  // guards the two behind it
  std::vector<Extent> mapped_;                                // by address
  std::function<void(std::byte*, std::size_t)> place_;
  std::uint64_t next_lane_ = kLanesOffset;
  std::uint64_t next_symmetric_ = kSymmetricOffset;
  std::uint64_t extent_end_ = kSymmetricOffset;  // of the extent that it is in
  std::size_t symmetric_left_ = kSymmetricBytes;
  bool keeps_all_ = false;
  std::mutex symmetric_mutex_;  // guards the five around it: memory is freed outside the engine's lock
  std::multimap<std::size_t, std::uint64_t> free_symmetric_;  // by bytes
};

}  // namespace tutti::shm
