// The memory that a rank shares with the other ranks of its host (segment_layout.h), its own or a peer's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "transport/shm/adopted.h"
#include "transport/shm/mapping.h"
#include "transport/shm/private_memory.h"
#include "transport/shm/segment_layout.h"
#include "transport/shm/symmetric_heap.h"

namespace tutti::internal::shm {

// Unmaps and closes in its destructor. Shared, because ranks that are threads of one process share its mappings.
class Segment : public Mapping {
 public:
  // Makes this rank's own. Throws Error{system}.
  static std::shared_ptr<Segment> create();
  // A peer's. Takes the fd. Checks that it is what it should be (size, seal); throws Error{refused}.
  static std::shared_ptr<Segment> map(int fd);
  // The one that a thread of this process made and that number() names, or nullptr if it is gone.
  static std::shared_ptr<Segment> find(std::uint64_t number);

  ~Segment();

  // Names a segment made in this process; 0 for one that was mapped.
  std::uint64_t number() const { return number_; }
  Proof proof() const { return word_.proof(); }  // of this process, while this lives
  SegmentHeader& header() const { return *reinterpret_cast<SegmentHeader*>(base_); }
  std::span<DirectoryEntry> directory() const {
    return {reinterpret_cast<DirectoryEntry*>(base_ + kDirectoryOffset), kDirectoryEntries};
  }

  // --- owner only
  // The offset of a fresh, zeroed lane of `bytes` for (communicator, peer), the first claim_bytes backed. The address
  // of a removed lane is not used again: a peer may still write a last acknowledgement there.
  std::uint64_t add_lane(std::uint64_t communicator, int peer, std::size_t bytes, std::size_t claim_bytes);
  void remove_lane(std::uint64_t communicator, int peer, std::size_t bytes) noexcept;
  // A peer's lane for what `from` writes to it, or 0 if it is not there yet. Any rank. As the peer says.
  std::uint64_t find_lane(std::uint64_t communicator, int from) const;
  // Symmetric memory, as of SymmetricHeap.
  std::uint64_t allocate(std::size_t bytes) { return heap_.allocate(bytes); }
  void free(std::uint64_t offset, std::size_t bytes) noexcept { heap_.free(offset, bytes); }
  void discard(std::uint64_t offset, std::size_t bytes) noexcept { heap_.discard(offset, bytes); }
  // A peer may still touch what allocate() has given, now or later: none is used again. writes: also what is adopted,
  // which is private from now on.
  void keep_all(bool writes) noexcept {
    heap_.keep_all();
    if (writes) adopted_.give_all_back(fd());
  }
  Adopted& adopted() { return adopted_; }
  // Whether [data, data + bytes) is symmetric memory, or adopted, and then its place. Not while an extent is mapped.
  bool holds(const std::byte* data, std::size_t bytes, Place& place) const {
    return is_symmetric(data, bytes, place.offset) || adopted_.holds(data, bytes, place);
  }
  // A message at such a place: before a peer is told of it; once the peer has written it there.
  void show(const std::byte* data, std::size_t bytes, const Place& place) {
    Adopted::show(data, bytes, place, at(place.offset));
  }
  void take(std::byte* data, std::size_t bytes, const Place& place) {
    adopted_.take(data, bytes, place, at(place.offset));
  }

 private:
  explicit Segment(int fd) : Mapping(fd) {}

  std::uint64_t number_ = 0;
  ProofWord word_;
  std::byte* base_ = nullptr;  // of the first slot
  std::uint64_t next_lane_ = kLanesOffset;
  SymmetricHeap heap_{*this};
  Adopted adopted_;
};

}  // namespace tutti::internal::shm
