#include "transport/shm/mapping.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <iterator>
#include <string>
#include <utility>

#include "base/descriptor.h"
#include "tutti/error.h"

namespace tutti::internal::shm {
namespace {

// Spare bytes behind each mapping, never used. Without them, neighbouring mappings would differ in high address bits
// alone. Some processors find a line in their first cache by a hash of bits 12 to 27 of its virtual address (AMD; Lipp
// et al., "Take A Way", AsiaCCS 2020), and the same place in two ranks' memory would share a hash: 1.7 times slower, as
// measured.
constexpr std::size_t kSpareBytes = 37 * 4096;
constexpr std::uint64_t kFirstSymmetricSlot = kSymmetricOffset / kSlotBytes;

}  // namespace

void throw_system_error(const std::string& what) {
  throw Error(ErrorCode::system, "shared memory: " + what + ": " + system_words(errno));
}

Mapping::~Mapping() {
  for (const Extent& extent : mapped()) ::munmap(extent.data, extent.bytes + kSpareBytes);
  ::close(fd_);
}

auto Mapping::mapped() const -> const Extents& {
  static const Extents none;
  const Extents* const last = mapped_.load(std::memory_order_acquire);
  return last != nullptr ? *last : none;
}

// In the first slot, which is mapped before any other.
std::span<std::atomic<std::uint32_t>> Mapping::extents() {
  return {reinterpret_cast<std::atomic<std::uint32_t>*>(at(kExtentsOffset)), kSymmetricSlots};
}

Mapping::Extent Mapping::extent_of(std::uint64_t slot) {
  if (slot < kFirstSymmetricSlot) return {slot * kSlotBytes, kSlotBytes, nullptr};
  const std::uint64_t symmetric = slot - kFirstSymmetricSlot;
  const std::uint32_t entry = symmetric < kSymmetricSlots ? extents()[symmetric].load(std::memory_order_acquire) : 0;
  const std::uint64_t first = entry >> 16, count = entry & 0xffff;
  if (symmetric < first || symmetric >= first + count || first + count > kSymmetricSlots)
    throw Error(ErrorCode::refused, "shared memory: a peer names memory that it has not made");
  return {kSymmetricOffset + first * kSlotBytes, count * kSlotBytes, nullptr};
}

void Mapping::publish(std::uint64_t offset, std::size_t bytes) {
  const std::uint64_t first = (offset - kSymmetricOffset) / kSlotBytes, count = bytes / kSlotBytes;
  for (std::uint64_t i = first; i < first + count; ++i)
    extents()[i].store(static_cast<std::uint32_t>(first << 16 | count), std::memory_order_release);
}

std::uintptr_t Mapping::map_slot(std::uint64_t slot) {
  const std::lock_guard lock(mutex_);
  Extent extent = extent_of(slot);
  if (const std::uintptr_t start = starts_[slot].load(std::memory_order_relaxed); start != 0) return start;
  void* const at = ::mmap(nullptr, extent.bytes + kSpareBytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd_,
                          static_cast<off_t>(extent.offset));
  if (at == MAP_FAILED) throw_system_error("cannot reserve address space (is there a limit on it? see ulimit -v)");
  extent.data = static_cast<std::byte*>(at);
  auto extents = std::make_unique<Extents>(mapped());
  extents->insert(std::ranges::upper_bound(*extents, extent.data, {}, &Extent::data), extent);
  versions_.push_back(std::move(extents));
  mapped_.store(versions_.back().get(), std::memory_order_release);
  if (place_) place_(extent.data, extent.bytes);
  const std::uintptr_t start = reinterpret_cast<std::uintptr_t>(at) - extent.offset;
  for (std::uint64_t i = extent.offset / kSlotBytes; i < (extent.offset + extent.bytes) / kSlotBytes; ++i)
    starts_[i].store(start, std::memory_order_release);
  return start;
}

void Mapping::keep_near(std::function<void(std::byte*, std::size_t)> place) {
  const std::lock_guard lock(mutex_);
  place_ = std::move(place);
  for (const Extent& extent : mapped()) place_(extent.data, extent.bytes);
}

bool Mapping::is_symmetric(const void* data, std::size_t bytes, std::uint64_t& offset) const {
  const auto* const at = static_cast<const std::byte*>(data);
  const Extents& extents = mapped();
  const auto above = std::ranges::upper_bound(extents, at, {}, &Extent::data);
  if (above == extents.begin()) return false;
  const Extent& extent = *std::prev(above);
  const auto before = static_cast<std::size_t>(at - extent.data);
  if (extent.offset < kSymmetricOffset || before > extent.bytes || bytes > extent.bytes - before) return false;
  offset = extent.offset + before;
  return true;
}

bool Mapping::file_has_by_now(std::uint64_t offset, std::uint64_t bytes) const {
  struct stat facts {};
  if (::fstat(fd_, &facts) != 0) return false;
  const std::uint64_t size = std::min(static_cast<std::uint64_t>(facts.st_size), std::uint64_t{kSlots * kSlotBytes});
  known_bytes_.store(size, std::memory_order_relaxed);
  return offset <= size && bytes <= size - offset;
}

void Mapping::claim(std::size_t offset, std::size_t bytes) const {
  int result;
  do result = ::fallocate(fd_, 0, static_cast<off_t>(offset), static_cast<off_t>(bytes));
  while (result < 0 && errno == EINTR);
  if (result < 0) throw_system_error("no room for " + std::to_string(bytes) + " bytes");
}

void Mapping::unclaim(std::size_t offset, std::size_t bytes) const noexcept {
  ::fallocate(fd_, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(offset), static_cast<off_t>(bytes));
}

}  // namespace tutti::internal::shm
