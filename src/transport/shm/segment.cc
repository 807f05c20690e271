#include "transport/shm/segment.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <map>
#include <mutex>
#include <string>

#include "base/descriptor.h"
#include "base/process_mutex.h"
#include "tutti/error.h"

namespace tutti::internal::shm {
namespace {

// The segments that the ranks of this process have made. Never destroyed: a segment may outlive main.
struct Made {
  std::uint64_t last = 0;
  std::map<std::uint64_t, std::weak_ptr<Segment>> by_number;
};
Made& made_here() {
  static Made& made = *new Made;
  return made;
}

DirectoryEntry* find_entry(std::span<DirectoryEntry> directory, std::uint64_t communicator, int peer) {
  for (DirectoryEntry& entry : directory)
    if (entry.offset.load(std::memory_order_acquire) != 0 &&
        entry.communicator.load(std::memory_order_relaxed) == communicator &&
        entry.peer.load(std::memory_order_relaxed) == static_cast<std::uint64_t>(peer))
      return &entry;
  return nullptr;
}

}  // namespace

std::shared_ptr<Segment> Segment::create() {
  const int fd = above_standard(::memfd_create("tutti", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (fd < 0) throw_system_error("memfd_create");
  std::shared_ptr<Segment> made(new Segment(fd));
  if (::fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_SEAL) < 0) throw_system_error("sealing the segment");
  made->claim(0, kHeadBytes);
  made->base_ = made->at(0);
  Made& here = made_here();
  const std::lock_guard lock(process_mutex(ProcessWide::segments));
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
  const std::lock_guard lock(process_mutex(ProcessWide::segments));
  const auto entry = here.by_number.find(number);
  return entry == here.by_number.end() ? nullptr : entry->second.lock();
}

Segment::~Segment() {
  if (number_ == 0) return;
  const std::lock_guard lock(process_mutex(ProcessWide::segments));
  made_here().by_number.erase(number_);
}

// --- lanes -----------------------------------------------------------------------------------------------------------

std::uint64_t Segment::add_lane(std::uint64_t communicator, int peer, std::size_t bytes, std::size_t claim_bytes) {
  bytes = whole_pages(bytes);
  std::uint64_t offset = next_lane_;
  if (offset % kSlotBytes + bytes > kSlotBytes) offset = whole_slots(offset);
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

void Segment::remove_lane(std::uint64_t communicator, int peer, std::size_t bytes) noexcept {
  DirectoryEntry* entry = find_entry(directory(), communicator, peer);
  if (entry == nullptr) return;
  unclaim(entry->offset.exchange(0, std::memory_order_acq_rel), whole_pages(bytes));
}

std::uint64_t Segment::find_lane(std::uint64_t communicator, int from) const {
  const DirectoryEntry* entry = find_entry(directory(), communicator, from);
  return entry == nullptr ? 0 : entry->offset.load(std::memory_order_acquire);
}

}  // namespace tutti::internal::shm
