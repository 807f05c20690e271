// Hands out a segment's symmetric memory. Owner only. Thread-safe: memory is freed outside the engine's lock.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>

#include "transport/shm/mapping.h"

namespace tutti::internal::shm {

class SymmetricHeap {
 public:
  explicit SymmetricHeap(Mapping& mapping) : mapping_(mapping) {}

  // Both in multiples of 4096. allocate() throws Error{system} where there is no room, in the file, the address space
  // or the system.
  std::uint64_t allocate(std::size_t bytes);
  void free(std::uint64_t offset, std::size_t bytes) noexcept;
  // Gives the memory behind a part of what was allocated back to the system. It is not used again before it is freed.
  void discard(std::uint64_t offset, std::size_t bytes) noexcept;
  // A peer may still touch this memory, now or later: what is freed from now on is left as it is.
  void keep_all() noexcept;

 private:
  void claim_in_pieces(std::size_t offset, std::size_t bytes);

  Mapping& mapping_;
  std::mutex mutex_;  // guards what follows
  std::uint64_t next_ = kSymmetricOffset;
  std::uint64_t extent_end_ = kSymmetricOffset;  // of the extent that it is in
  std::size_t left_ = kSymmetricBytes;
  bool keeps_all_ = false;
  std::multimap<std::size_t, std::uint64_t> freed_;  // by bytes
};

}  // namespace tutti::internal::shm
