#include "transport/shm/symmetric_heap.h"

#include <algorithm>
#include <string>

#include "memory/available.h"
#include "tutti/error.h"

namespace tutti::internal::shm {
namespace {

constexpr std::size_t kPieceBytes = std::size_t{256} << 20;
constexpr std::size_t kMaxGrowthBytes = std::size_t{4} << 30;  // of an extent beyond what is asked for

}  // namespace

// The kernel gives shared memory that it does not have, and then kills any processes to get it. Other ranks may ask at
// the same time. So the free memory is looked up again before each piece.
void SymmetricHeap::claim_in_pieces(std::size_t offset, std::size_t bytes) {
  std::size_t done = 0;
  try {
    while (done < bytes) {
      const std::size_t left = bytes - done, piece = std::min(left, kPieceBytes);
      const std::uint64_t available = bytes < kPieceBytes ? bytes + kPieceBytes : available_memory_bytes();
      if (available < left + kPieceBytes)
        throw Error(ErrorCode::system, "shared memory: no room for " + std::to_string(bytes) +
                                           " bytes: the system has " + std::to_string(available) + " left for " +
                                           std::to_string(left) + " of them");
      mapping_.claim(offset + done, piece);
      done += piece;
    }
  } catch (...) {
    if (done > 0) mapping_.unclaim(offset, done);
    throw;
  }
}

// Extents grow as a vector does, so that they stay few. What is left unused of an extent is less than the next request.
// So the slots suffice as long as all requests together are at most kSymmetricBytes.
std::uint64_t SymmetricHeap::allocate(std::size_t bytes) {
  const std::lock_guard lock(mutex_);
  const std::size_t pages = bytes <= kSymmetricBytes ? whole_pages(bytes) : bytes;  // of more no page is looked for
  if (const auto freed = freed_.find(pages); freed != freed_.end()) {
    claim_in_pieces(freed->second, pages);
    const std::uint64_t offset = freed->second;
    freed_.erase(freed);
    return offset;
  }
  if (pages > left_)
    throw Error(ErrorCode::system, "shared memory: no room for " + std::to_string(bytes) +
                                       " bytes of symmetric memory (at most " + std::to_string(kSymmetricBytes) +
                                       " over a rank's life)");
  std::uint64_t offset = next_, end = extent_end_;
  if (pages > end - offset) {
    const std::size_t growth = std::clamp<std::size_t>(end - kSymmetricOffset, kSlotBytes, kMaxGrowthBytes);
    offset = end;
    end += std::min(std::max(whole_slots(pages), growth), kSlots * kSlotBytes - offset);
  }
  claim_in_pieces(offset, pages);
  try {
    if (offset == extent_end_) mapping_.publish(offset, end - offset);
    mapping_.at(offset);
  } catch (...) {
    mapping_.unclaim(offset, pages);
    throw;
  }
  next_ = offset + pages;
  extent_end_ = end;
  left_ -= pages;
  return offset;
}

void SymmetricHeap::free(std::uint64_t offset, std::size_t bytes) noexcept {
  const std::lock_guard lock(mutex_);
  if (keeps_all_) return;
  bytes = whole_pages(bytes);
  mapping_.unclaim(offset, bytes);
  freed_.emplace(bytes, offset);
}

void SymmetricHeap::discard(std::uint64_t offset, std::size_t bytes) noexcept {
  const std::lock_guard lock(mutex_);
  if (!keeps_all_) mapping_.unclaim(offset, bytes);
}

void SymmetricHeap::keep_all() noexcept {
  const std::lock_guard lock(mutex_);
  keeps_all_ = true;
}

}  // namespace tutti::internal::shm
