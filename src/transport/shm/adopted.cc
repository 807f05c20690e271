#include "transport/shm/adopted.h"

#include <sys/mman.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstring>
#include <exception>
#include <iterator>

#include "memory/address_space.h"

namespace tutti::internal::shm {
namespace {

std::uintptr_t address_of(const std::byte* at) { return reinterpret_cast<std::uintptr_t>(at); }

}  // namespace

void Adopted::add(const Part& part) {
  const std::lock_guard lock(mutex_);
  parts_.insert(std::ranges::upper_bound(parts_, part.data, {}, &Part::data), part);
  count_.store(parts_.size(), std::memory_order_relaxed);
}

bool Adopted::remove(const std::byte* data) {
  const std::lock_guard lock(mutex_);
  const bool was_there = std::erase_if(parts_, [&](const Part& part) { return part.data == data; }) > 0;
  count_.store(parts_.size(), std::memory_order_relaxed);
  return was_there;
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
  std::memcpy(to, from, place.before);
  std::memcpy(to + bytes - place.behind, from + bytes - place.behind, place.behind);
}

// The pages may be private since the peer was told of them.
void Adopted::take_late(std::byte* data, std::size_t bytes, const std::byte* there) const {
  Place place;
  if (!holds(data, bytes, place)) std::memcpy(data, there, bytes);
}

bool Adopted::make_private(int fd, const Part& part) noexcept try {
  struct stat file {};
  const auto ranges = mapped_in(address_of(part.first), address_of(part.last));
  if (!ranges || ::fstat(fd, &file) != 0) return false;
  const std::uint64_t offset = part.offset + static_cast<std::uint64_t>(part.first - part.data);
  for (const MappedRange& range : *ranges) {
    const std::uintptr_t begin = std::max(range.begin, address_of(part.first));
    const std::uintptr_t end = std::min(range.end, address_of(part.last));
    const std::uint64_t after = begin - address_of(part.first);
    const bool is_of_segment = range.inode == file.st_ino && range.name.starts_with("/memfd:tutti");
    if (!is_of_segment || range.offset + (begin - range.begin) != offset + after) continue;
    void* const fresh = ::mmap(nullptr, end - begin, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (fresh == MAP_FAILED) return false;
    std::memcpy(fresh, part.first + after, end - begin);
    if (::mremap(fresh, end - begin, end - begin, MREMAP_MAYMOVE | MREMAP_FIXED, part.first + after) == MAP_FAILED) {
      ::munmap(fresh, end - begin);
      return false;
    }
  }
  return true;
} catch (const std::exception&) {  // no memory for the list
  return false;
}

void Adopted::give_all_back(int fd) noexcept {
  const std::lock_guard lock(mutex_);
  for (const Part& part : parts_) make_private(fd, part);
  parts_.clear();
  has_given_back_.store(true, std::memory_order_relaxed);
  count_.store(0, std::memory_order_relaxed);
}

}  // namespace tutti::internal::shm
