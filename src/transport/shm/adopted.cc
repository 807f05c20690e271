#include "transport/shm/adopted.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <iterator>

#include "transport/shm/segment_layout.h"

namespace tutti::internal::shm {

void Adopted::add(const Part& part) {
  const std::lock_guard lock(mutex_);
  parts_.insert(std::ranges::upper_bound(parts_, part.data, {}, &Part::data), part);
  count_.store(parts_.size(), std::memory_order_relaxed);
}

bool Adopted::remove(const Part& part) {
  const std::lock_guard lock(mutex_);
  const bool was_there = std::erase_if(parts_, [&](const Part& each) { return each.offset == part.offset; }) > 0;
  count_.store(parts_.size(), std::memory_order_relaxed);
  return was_there;
}

std::optional<std::vector<MappedRange>> Adopted::mapped_in(const std::byte* first, const std::byte* last) {
  const std::lock_guard lock(mutex_);
  if (!space_) space_.emplace();
  return space_->mapped_in(reinterpret_cast<std::uintptr_t>(first), reinterpret_cast<std::uintptr_t>(last));
}

bool Adopted::finds(const std::byte* data, std::size_t bytes, Place& place) const {
  const std::lock_guard lock(mutex_);
  const auto above = std::ranges::upper_bound(parts_, data, {}, &Part::data);
  if (above == parts_.begin()) return false;
  const Part& part = *std::prev(above);
  const auto at = static_cast<std::size_t>(data - part.data);
  if (at > part.bytes || bytes > part.bytes - at) return false;
  const std::byte* const end = data + bytes;
  const auto edge = [bytes](const std::byte* from, const std::byte* to) {
    return static_cast<std::uint16_t>(from < to ? std::min(bytes, static_cast<std::size_t>(to - from)) : 0);
  };
  place = {part.offset + at, edge(data, part.first), edge(part.last, end)};
  return true;
}

void Adopted::copy_edges(std::byte* to, const std::byte* from, std::size_t bytes, const Place& place) {
  // Where they are equal, another peer may be reading them, to which the same bytes are lent.
  const auto copy = [&](std::size_t at, std::size_t size) {
    if (std::memcmp(to + at, from + at, size) != 0) std::memcpy(to + at, from + at, size);
  };
  copy(0, place.before);
  copy(bytes - place.behind, place.behind);
}

// The pages may be private since the peer was told of them.
void Adopted::take_late(std::byte* data, std::size_t bytes, const std::byte* there) const {
  Place place;
  if (!holds(data, bytes, place)) std::memcpy(data, there, bytes);
}

// Nobody here knows who uses the memory now. So each page becomes a private copy of its own by a write that changes
// nothing: a store of another thread comes before it or after it.
void Adopted::give_all_back(int fd) noexcept {
  const std::lock_guard lock(mutex_);
  for (const Part& part : parts_) {
    const auto bytes = static_cast<std::size_t>(part.last - part.first);
    const auto offset = static_cast<off_t>(part.offset + static_cast<std::uint64_t>(part.first - part.data));
    if (::mmap(part.first, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_FIXED, fd, offset) == MAP_FAILED) continue;
    for (std::byte* page = part.first; page < part.last; page += kPageBytes)
      std::atomic_ref(*reinterpret_cast<std::uint8_t*>(page)).fetch_or(0, std::memory_order_relaxed);
  }
  parts_.clear();
  has_given_back_.store(true, std::memory_order_relaxed);
  count_.store(0, std::memory_order_relaxed);
}

}  // namespace tutti::internal::shm
