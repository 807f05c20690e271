// The memory that a rank shares with the other ranks of its host: one memfd, mapped whole by each of them.
//
//   offset 0          header: who owns it, whether the owner sleeps
//   kDirectoryOffset  directory: which lane is whose
//   kLanesOffset      lanes: what each peer writes to the owner (lane.h), handed out from the front
//   kSymmetricOffset  symmetric memory: Communicator::allocate
//
// The file is sparse and sealed against shrinking; it only grows, and space is claimed with fallocate before it is
// touched, so running out is an error and never a SIGBUS. Mappings reach beyond the end of the file, so growing needs
// no remapping.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <span>

#include "transport/turn.h"

namespace tutti::shm {

inline constexpr std::size_t kDirectoryOffset = 4096;
inline constexpr std::size_t kDirectoryEntries = 4096;
inline constexpr std::size_t kLanesOffset = 1 << 20;
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
inline constexpr std::size_t kSymmetricOffset = std::size_t{4}
                                                << 30;  // sanitizers keep shadow memory for what is mapped
inline constexpr std::size_t kSymmetricBytes = std::size_t{4} << 30;
#else
inline constexpr std::size_t kSymmetricOffset = std::size_t{64} << 30;
inline constexpr std::size_t kSymmetricBytes = std::size_t{64} << 30;
#endif
// The last pages are never used: they keep mappings that lie side by side from differing in high address bits alone.
// Some processors find a line in their first cache by a hash of bits 12 to 27 of its virtual address (AMD; Lipp et al.,
// "Take A Way", AsiaCCS 2020), and the same place in two ranks' memory would share a hash: 1.7 times slower, as
// measured.
inline constexpr std::size_t kMappedBytes = kSymmetricOffset + kSymmetricBytes + 37 * 4096;

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

// A mapping of a segment, one's own or a peer's. Unmaps and closes in its destructor. Shared, because ranks that are
// threads of one process share one mapping.
class Segment {
 public:
  // Makes this rank's own. Throws Error{system}.
  static std::shared_ptr<Segment> create();
  // Maps a peer's. Takes the fd. Checks that it is what it should be (size, seal); throws Error{refused}.
  static std::shared_ptr<Segment> map(int fd);
  // The one that a thread of this process made and that number() names, or nullptr if it is gone.
  static std::shared_ptr<Segment> find(std::uint64_t number);

  ~Segment();
  Segment(const Segment&) = delete;
  Segment& operator=(const Segment&) = delete;

  int fd() const { return fd_; }
  // Names a segment made in this process; 0 for one that was mapped.
  std::uint64_t number() const { return number_; }
  std::byte* base() const { return base_; }
  SegmentHeader& header() const { return *reinterpret_cast<SegmentHeader*>(base_); }
  std::span<DirectoryEntry> directory() const {
    return {reinterpret_cast<DirectoryEntry*>(base_ + kDirectoryOffset), kDirectoryEntries};
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
  // A peer's lane for what `from` writes to it, or 0 if it is not there yet. Any rank.
  std::uint64_t find_lane(std::uint64_t communicator, int from) const;
  // Symmetric memory, in multiples of 4096.
  std::uint64_t allocate(std::size_t bytes);
  void free(std::uint64_t offset, std::size_t bytes) noexcept;
  // A peer may still touch this memory, now or later: what is freed from now on is left as it is.
  void keep_all() noexcept;

 private:
  explicit Segment(int fd) : fd_(fd) {}
  int fd_;
  std::uint64_t number_ = 0;
  std::byte* base_ = nullptr;
  std::uint64_t next_lane_ = kLanesOffset;
  std::uint64_t next_symmetric_ = kSymmetricOffset;
  bool keeps_all_ = false;
  std::mutex symmetric_mutex_;  // guards the three around it: memory is freed outside the engine's lock
  std::multimap<std::size_t, std::uint64_t> free_symmetric_;  // by bytes
};

}  // namespace tutti::shm
