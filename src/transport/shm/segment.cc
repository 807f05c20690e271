#include "transport/shm/segment.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>

#include "tutti/error.h"

namespace tutti::shm {
namespace {

[[noreturn]] void fail(const std::string& what) {
  throw Error(ErrorCode::system, "shared memory: " + what + ": " + std::strerror(errno));
}

std::byte* map_whole(int fd) {
  void* at = ::mmap(nullptr, kMappedBytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, 0);
  if (at == MAP_FAILED) fail("cannot reserve address space (is there a limit on it? see ulimit -v)");
  return static_cast<std::byte*>(at);
}

std::size_t to_pages(std::size_t bytes) { return (bytes + 4095) / 4096 * 4096; }

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
  const int fd = ::memfd_create("tutti", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (fd < 0) fail("memfd_create");
  std::shared_ptr<Segment> made(new Segment(fd));
  if (::fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK) < 0) fail("sealing the segment");
  made->base_ = map_whole(fd);
  made->claim(0, kDirectoryOffset + kDirectoryEntries * sizeof(DirectoryEntry));
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
      facts.st_size < static_cast<off_t>(kDirectoryOffset + kDirectoryEntries * sizeof(DirectoryEntry)))
    throw Error(ErrorCode::refused,
                "shared memory: what a peer handed over is not a tutti segment sealed against shrinking");
  made->base_ = map_whole(fd);
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
  if (base_ != nullptr) ::munmap(base_, kMappedBytes);
  ::close(fd_);
}

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
  const std::uint64_t offset = next_lane_;
  if (offset + bytes > kSymmetricOffset) throw Error(ErrorCode::system, "shared memory: no room for another channel");
  next_lane_ += bytes;
  claim(offset, claim_bytes);
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

std::uint64_t Segment::allocate(std::size_t bytes) {
  const std::lock_guard lock(symmetric_mutex_);
  bytes = to_pages(bytes);
  if (const auto freed = free_symmetric_.find(bytes); freed != free_symmetric_.end()) {
    claim(freed->second, bytes);
    const std::uint64_t offset = freed->second;
    free_symmetric_.erase(freed);
    return offset;
  }
  if (bytes > kSymmetricOffset + kSymmetricBytes - next_symmetric_)
    throw Error(ErrorCode::system, "shared memory: no room for " + std::to_string(bytes) +
                                       " bytes of symmetric memory (at most " + std::to_string(kSymmetricBytes) +
                                       " over a rank's life)");
  claim(next_symmetric_, bytes);
  const std::uint64_t offset = next_symmetric_;
  next_symmetric_ += bytes;
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
