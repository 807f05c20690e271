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

// The bytes of [data, data + bytes) that lie before `first`, and from `last` on: on pages that are not shared.
struct Edges {
  std::size_t before, behind;
  Edges(std::size_t b, std::size_t e) : before(b), behind(e) {}
  Edges(const std::byte* data, std::size_t bytes, const std::byte* first, const std::byte* last)
      : before(data < first ? std::min(bytes, static_cast<std::size_t>(first - data)) : 0),
        behind(data + bytes > last ? std::min(bytes, static_cast<std::size_t>(data + bytes - last)) : 0) {}
};

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

const Adopted::Part* Adopted::part_with(const std::byte* data, std::size_t bytes) const {
  const auto above = std::ranges::upper_bound(parts_, data, {}, &Part::data);
  if (above == parts_.begin()) return nullptr;
  const Part& part = *std::prev(above);
  const auto before = static_cast<std::size_t>(data - part.data);
  return before <= part.bytes && bytes <= part.bytes - before ? &part : nullptr;
}

bool Adopted::finds(const std::byte* data, std::size_t bytes, std::uint64_t& offset) const {
  const std::lock_guard lock(mutex_);
  const Part* const part = part_with(data, bytes);
  if (part == nullptr) return false;
  offset = part->offset + static_cast<std::size_t>(data - part->data);
  return true;
}

void Adopted::copy_edges(const std::byte* data, std::size_t bytes) const {
  const std::lock_guard lock(mutex_);
  const Part* const part = part_with(data, bytes);
  if (part == nullptr) return;
  const Edges edges(data, bytes, part->first, part->last);
  std::byte* const there = part->here + (data - part->data);
  std::memcpy(there, data, edges.before);
  std::memcpy(there + bytes - edges.behind, data + bytes - edges.behind, edges.behind);
}

void Adopted::copy_back(std::byte* data, std::size_t bytes, const std::byte* there) const {
  const std::lock_guard lock(mutex_);
  const Part* const part = part_with(data, bytes);
  const Edges edges = part != nullptr ? Edges(data, bytes, part->first, part->last) : Edges{bytes, 0};
  std::memcpy(data, there, edges.before);
  std::memcpy(data + bytes - edges.behind, there + bytes - edges.behind, edges.behind);
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
  count_.store(0, std::memory_order_relaxed);
}

}  // namespace tutti::internal::shm
