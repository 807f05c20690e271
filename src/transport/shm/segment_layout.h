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

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "transport/turn.h"

namespace tutti::internal::shm {

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

inline constexpr std::size_t kPageBytes = 4096;
inline constexpr std::size_t whole_pages(std::size_t bytes) {
  return (bytes + kPageBytes - 1) / kPageBytes * kPageBytes;
}
inline constexpr std::size_t whole_slots(std::size_t bytes) {
  return (bytes + kSlotBytes - 1) / kSlotBytes * kSlotBytes;
}

}  // namespace tutti::internal::shm
