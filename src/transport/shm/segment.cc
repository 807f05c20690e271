#include "transport/shm/segment.h"

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
#include "memory/available.h"
#include "tutti/error.h"

namespace tutti::shm {
namespace {

[[noreturn]] void fail(const std::string& what) {
  throw Error(ErrorCode::system, "shared memory: " + what + ": " + system_words(errno));
}

// Never used, behind each mapping: they keep mappings that lie side by side from differing in high address bits alone.
// Some processors find a line in their first cache by a hash of bits 12 to 27 of its virtual address (AMD; Lipp et al.,
// "Take A Way", AsiaCCS 2020), and the same place in two ranks' memory would share a hash: 1.7 times slower, as
// measured.
constexpr std::size_t kSpareBytes = 37 * 4096;
constexpr std::size_t kPieceBytes = std::size_t{256} << 20;
constexpr std::size_t kMostGrowthBytes = std::size_t{4} << 30;  // of an extent beyond what is asked for
constexpr std::uint64_t kFirstSymmetricSlot = kSymmetricOffset / kSlotBytes;

std::size_t to_pages(std::size_t bytes) { return (bytes + 4095) / 4096 * 4096; }
std::size_t to_slots(std::size_t bytes) { return (bytes + kSlotBytes - 1) / kSlotBytes * kSlotBytes; }

// The segments that the ranks of this process have made. Never destroyed: a segment may outlive main.
struct Made {
  std::mutex mutex;
  std::uint64_t last = 0;
  std::map<std::uint64_t, std::weak_ptr<Segment>> by_number;
};
Made& made_here() {
  static Made& made = *new Made;
  return made;
}

}  // namespace

std::shared_ptr<Segment> Segment::create() {
  const int fd = above_standard(::memfd_create("tutti", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (fd < 0) fail("memfd_create");
  std::shared_ptr<Segment> made(new Segment(fd));
  if (::fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK) < 0) fail("sealing the segment");
  made->claim(0, kHeadBytes);
  made->base_ = made->at(0);
  Made& here = made_here();
  const std::lock_guard lock(here.mutex);
  made->number_ = ++here.last;
  here.by_number[made->number_] = made;
  return made;
}

std::shared_ptr<Segment> Segment::map(int fd) {
  std::shared_ptr<Segment> made(new Segment(fd));
  struct stat facts {};
  const int seals = ::fcntl(fd, F_GET_SEALS);
  if (seals < 0 || !(seals & F_SEAL_SHRINK) || ::fstat(fd, &facts) < 0 ||
      facts.st_size < static_cast<off_t>(kHeadBytes))
    throw Error(ErrorCode::refused,
                "shared memory: what a peer handed over is not a tutti segment sealed against shrinking");
  made->base_ = made->at(0);
  return made;
}

std::shared_ptr<Segment> Segment::find(std::uint64_t number) {
  Made& here = made_here();
  const std::lock_guard lock(here.mutex);
  const auto entry = here.by_number.find(number);
  return entry == here.by_number.end() ? nullptr : entry->second.lock();
}

Segment::~Segment() {
  if (number_ != 0) {
    const std::lock_guard lock(made_here().mutex);
    made_here().by_number.erase(number_);
  }
  for (const Extent& extent : mapped_) ::munmap(extent.data, extent.bytes + kSpareBytes);
  ::close(fd_);
}

// --- mapping: a slot with all that is in one piece with it
// ------------------------------------------------------------

Segment::Extent Segment::extent_of(std::uint64_t slot) const {
  if (slot < kFirstSymmetricSlot) return {slot * kSlotBytes, kSlotBytes, nullptr};
  const std::uint64_t symmetric = slot - kFirstSymmetricSlot;
  const std::uint32_t entry = symmetric < kSymmetricSlots ? extents()[symmetric].load(std::memory_order_acquire) : 0;
  const std::uint64_t first = entry >> 16, count = entry & 0xffff;
  if (symmetric < first || symmetric >= first + count || first + count > kSymmetricSlots)
    throw Error(ErrorCode::refused, "shared memory: a peer names memory that it has not made");
  return {kSymmetricOffset + first * kSlotBytes, count * kSlotBytes, nullptr};
}

void Segment::publish(const Extent& extent) const {
  const std::uint64_t first = (extent.offset - kSymmetricOffset) / kSlotBytes, count = extent.bytes / kSlotBytes;
  for (std::uint64_t i = first; i < first + count; ++i)
    extents()[i].store(static_cast<std::uint32_t>(first << 16 | count), std::memory_order_release);
}

std::uintptr_t Segment::map_slot(std::uint64_t slot) {
  const std::lock_guard lock(mapping_mutex_);
  Extent extent = extent_of(slot);
  if (const std::uintptr_t start = starts_[slot].load(std::memory_order_relaxed); start != 0) return start;
  void* const at = ::mmap(nullptr, extent.bytes + kSpareBytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd_,
                          static_cast<off_t>(extent.offset));
  if (at == MAP_FAILED) fail("cannot reserve address space (is there a limit on it? see ulimit -v)");
  extent.data = static_cast<std::byte*>(at);
  mapped_.insert(std::ranges::upper_bound(mapped_, extent.data, {}, &Extent::data), extent);
  if (place_) place_(extent.data, extent.bytes);
  const std::uintptr_t start = reinterpret_cast<std::uintptr_t>(at) - extent.offset;
  for (std::uint64_t i = extent.offset / kSlotBytes; i < (extent.offset + extent.bytes) / kSlotBytes; ++i)
    starts_[i].store(start, std::memory_order_release);
  return start;
}

void Segment::keep_near(std::function<void(std::byte*, std::size_t)> place) {
  const std::lock_guard lock(mapping_mutex_);
  place_ = std::move(place);
  for (const Extent& extent : mapped_) place_(extent.data, extent.bytes);
}

bool Segment::holds(const void* data, std::size_t bytes, std::uint64_t& offset) const {
  const auto* const at = static_cast<const std::byte*>(data);
  const auto above = std::ranges::upper_bound(mapped_, at, {}, &Extent::data);
  if (above == mapped_.begin()) return false;
  const Extent& extent = *std::prev(above);
  const auto before = static_cast<std::size_t>(at - extent.data);
  if (extent.offset < kSymmetricOffset || before > extent.bytes || bytes > extent.bytes - before) return false;
  offset = extent.offset + before;
  return true;
}

bool Segment::file_has_by_now(std::uint64_t offset, std::uint64_t bytes) const {
  struct stat facts {};
  if (::fstat(fd_, &facts) != 0) return false;
  const std::uint64_t size = std::min(static_cast<std::uint64_t>(facts.st_size), std::uint64_t{kSlots * kSlotBytes});
  known_bytes_.store(size, std::memory_order_relaxed);
  return offset <= size && bytes <= size - offset;
}

// --- lanes
// ------------------------------------------------------------------------------------------------------------

void Segment::claim(std::size_t offset, std::size_t bytes) const {
  int result;
  do result = ::fallocate(fd_, 0, static_cast<off_t>(offset), static_cast<off_t>(bytes));
  while (result < 0 && errno == EINTR);
  if (result < 0) fail("no room for " + std::to_string(bytes) + " bytes");
}

void Segment::unclaim(std::size_t offset, std::size_t bytes) const noexcept {
  ::fallocate(fd_, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(offset), static_cast<off_t>(bytes));
}

std::uint64_t Segment::add_lane(std::uint64_t communicator, int peer, std::size_t bytes, std::size_t claim_bytes) {
  bytes = to_pages(bytes);
  std::uint64_t offset = next_lane_;
  if (offset % kSlotBytes + bytes > kSlotBytes) offset = to_slots(offset);
  if (offset + bytes > kSymmetricOffset) throw Error(ErrorCode::system, "shared memory: no room for another channel");
  next_lane_ = offset + bytes;
  claim(offset, claim_bytes);
  at(offset);
  for (DirectoryEntry& entry : directory()) {
    if (entry.offset.load(std::memory_order_relaxed) != 0) continue;
    entry.communicator.store(communicator, std::memory_order_relaxed);
    entry.peer.store(static_cast<std::uint64_t>(peer), std::memory_order_relaxed);
    entry.offset.store(offset, std::memory_order_release);
    return offset;
  }
  throw Error(ErrorCode::system,
              "shared memory: more than " + std::to_string(kDirectoryEntries) + " channels on one rank");
}

namespace {

DirectoryEntry* find_entry(std::span<DirectoryEntry> directory, std::uint64_t communicator, int peer) {
  for (DirectoryEntry& entry : directory)
    if (entry.offset.load(std::memory_order_acquire) != 0 &&
        entry.communicator.load(std::memory_order_relaxed) == communicator &&
        entry.peer.load(std::memory_order_relaxed) == static_cast<std::uint64_t>(peer))
      return &entry;
  return nullptr;
}

}  // namespace

void Segment::remove_lane(std::uint64_t communicator, int peer, std::size_t bytes) noexcept {
  DirectoryEntry* entry = find_entry(directory(), communicator, peer);
  if (entry == nullptr) return;
  unclaim(entry->offset.exchange(0, std::memory_order_acq_rel), to_pages(bytes));
}

std::uint64_t Segment::find_lane(std::uint64_t communicator, int from) const {
  const DirectoryEntry* entry = find_entry(directory(), communicator, from);
  return entry == nullptr ? 0 : entry->offset.load(std::memory_order_acquire);
}

// --- symmetric memory
// -----------------------------------------------------------------------------------------------------------

// The kernel gives shared memory that it does not have, and then kills processes, any of them, to have it. Other ranks
// may be asking at the same time: so it is looked for again before each piece.
void Segment::claim_in_pieces(std::size_t offset, std::size_t bytes) const {
  std::size_t done = 0;
  try {
    while (done < bytes) {
      const std::size_t left = bytes - done, piece = std::min(left, kPieceBytes);
      const std::uint64_t available = bytes < kPieceBytes ? bytes + kPieceBytes : available_memory_bytes();
      if (available < left + kPieceBytes)
        throw Error(ErrorCode::system, "shared memory: no room for " + std::to_string(bytes) +
                                           " bytes: the system has " + std::to_string(available) + " left for " +
                                           std::to_string(left) + " of them");
      claim(offset + done, piece);
      done += piece;
    }
  } catch (...) {
    if (done > 0) unclaim(offset, done);
    throw;
  }
}

// Extents grow as a vector does, so that they stay few. Of one, less is left unused than what was asked for next; so as
// long as no more than kSymmetricBytes are asked for in all, there are slots.
std::uint64_t Segment::allocate(std::size_t bytes) {
  const std::lock_guard lock(symmetric_mutex_);
  const std::size_t pages = bytes <= kSymmetricBytes ? to_pages(bytes) : bytes;  // of more no page is looked for
  if (const auto freed = free_symmetric_.find(pages); freed != free_symmetric_.end()) {
    claim_in_pieces(freed->second, pages);
    const std::uint64_t offset = freed->second;
    free_symmetric_.erase(freed);
    return offset;
  }
  if (pages > symmetric_left_)
    throw Error(ErrorCode::system, "shared memory: no room for " + std::to_string(bytes) +
                                       " bytes of symmetric memory (at most " + std::to_string(kSymmetricBytes) +
                                       " over a rank's life)");
  std::uint64_t offset = next_symmetric_, end = extent_end_;
  if (pages > end - offset) {
    const std::size_t growth = std::clamp<std::size_t>(end - kSymmetricOffset, kSlotBytes, kMostGrowthBytes);
    offset = end;
    end += std::min(std::max(to_slots(pages), growth), kSlots * kSlotBytes - offset);
  }
  claim_in_pieces(offset, pages);
  try {
    if (offset == extent_end_) publish({offset, end - offset, nullptr});
    at(offset);
  } catch (...) {
    unclaim(offset, pages);
    throw;
  }
  next_symmetric_ = offset + pages;
  extent_end_ = end;
  symmetric_left_ -= pages;
  return offset;
}

void Segment::free(std::uint64_t offset, std::size_t bytes) noexcept {
  const std::lock_guard lock(symmetric_mutex_);
  if (keeps_all_) return;
  bytes = to_pages(bytes);
  unclaim(offset, bytes);
  free_symmetric_.emplace(bytes, offset);
}

void Segment::keep_all() noexcept {
  const std::lock_guard lock(symmetric_mutex_);
  keeps_all_ = true;
}

}  // namespace tutti::shm
