#include "transport/shm/adopted.h"

#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>
#include <utility>

#include "base/descriptor.h"
#include "memory/address_space.h"
#include "transport/shm/segment.h"
#include "tutti/error.h"

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

std::uintptr_t number(const std::byte* at) { return reinterpret_cast<std::uintptr_t>(at); }

// Throws where the pages are not what malloc(), operator new and anonymous mmap() give.
void check_is_private(const std::byte* first, const std::byte* last) {
  const auto refuse = [](const std::string& why) {
    throw Error(ErrorCode::invalid_argument, "adopt: the memory cannot be shared in place: " + why);
  };
  const auto ranges = mapped_in(number(first), number(last));
  if (!ranges) refuse("/proc/self/maps, which says what it is, cannot be read");
  std::uintptr_t next = number(first);
  for (const MappedRange& range : *ranges) {
    if (range.begin > next) break;
    const bool has_name = !range.name.empty() && range.name != "[heap]" && !range.name.starts_with("[anon:");
    if (range.name.starts_with("/memfd:tutti")) refuse("it is shared already");
    if (range.inode != 0 || has_name) refuse("it belongs to " + range.name);
    if (range.permissions != "rw-p") refuse("it is \"" + range.permissions + "\" to the system, not \"rw-p\"");
    next = range.end;
  }
  if (next < number(last)) refuse("nothing is mapped at a part of it");
}

}  // namespace

// --- which memory is adopted ------------------------------------------------------------------------------------------

void Adopted::add(const Part& part) {
  const std::lock_guard lock(mutex_);
  parts_.insert(std::ranges::upper_bound(parts_, part.data, {}, &Part::data), part);
  count_.store(parts_.size(), std::memory_order_relaxed);
}

// False: it was given back already.
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

// --- adopting -----------------------------------------------------------------------------------------------------------

// One part, for as long as it is adopted.
class Adoption {
 public:
  Adoption(std::shared_ptr<Segment> segment, std::byte* data, std::size_t bytes);
  ~Adoption();
  Adoption(const Adoption&) = delete;
  Adoption& operator=(const Adoption&) = delete;

  static bool make_private(const Segment& segment, const Adopted::Part& part) noexcept;

 private:
  std::uint64_t offset_of_pages() const { return part_.offset - number(part_.data) % kPageBytes; }
  std::size_t pages_bytes() const { return whole_pages(number(part_.data) % kPageBytes + part_.bytes); }

  const std::shared_ptr<Segment> segment_;
  Adopted::Part part_{};
  const pid_t process_ = ::getpid();  // a forked child shares the pages with its parent, and leaves them as they are
};

Adoption::Adoption(std::shared_ptr<Segment> segment, std::byte* data, std::size_t bytes)
    : segment_(std::move(segment)) {
  part_.data = data;
  part_.bytes = bytes;
  part_.first = data + (0 - number(data)) % kPageBytes;
  part_.last = data + bytes - number(data + bytes) % kPageBytes;
  const std::size_t before = number(data) % kPageBytes, shared = static_cast<std::size_t>(part_.last - part_.first);
  part_.offset = segment_->allocate(whole_pages(before + bytes)) + before;
  try {
    part_.here = segment_->at(part_.offset);
    std::byte* const there = part_.here + (part_.first - data);
    std::memcpy(there, part_.first, shared);
    const auto offset = static_cast<off_t>(part_.offset + static_cast<std::uint64_t>(part_.first - data));
    if (::mmap(part_.first, shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED | MAP_POPULATE, segment_->fd(),
               offset) == MAP_FAILED)
      throw_system_error("cannot map the segment at the buffer's address");
    segment_->adopted().add(part_);
  } catch (...) {
    segment_->free(offset_of_pages(), pages_bytes());
    throw;
  }
}

Adoption::~Adoption() {
  if (::getpid() != process_) return;
  const bool was_there = segment_->adopted().remove(part_.data);
  if (!was_there || make_private(*segment_, part_)) segment_->free(offset_of_pages(), pages_bytes());
}

// The caller may have freed the memory, and something else may be there by now: that is left alone. False: the system
// has no memory for the copy, and the pages stay shared.
bool Adoption::make_private(const Segment& segment, const Adopted::Part& part) noexcept try {
  struct stat file {};
  const auto ranges = mapped_in(number(part.first), number(part.last));
  if (!ranges || ::fstat(segment.fd(), &file) != 0) return false;
  const std::uint64_t offset = part.offset + static_cast<std::uint64_t>(part.first - part.data);
  for (const MappedRange& range : *ranges) {
    const std::uintptr_t begin = std::max(range.begin, number(part.first));
    const std::uintptr_t end = std::min(range.end, number(part.last));
    const std::uint64_t after = begin - number(part.first);
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

void Adopted::give_all_back(const Segment& segment) noexcept {
  const std::lock_guard lock(mutex_);
  for (const Part& part : parts_) Adoption::make_private(segment, part);
  parts_.clear();
  count_.store(0, std::memory_order_relaxed);
}

std::shared_ptr<void> adopt(std::shared_ptr<Segment> segment, std::byte* data, std::size_t bytes) {
  const std::uintptr_t begin = number(data), end = begin + bytes;
  const std::byte* const first = data + (0 - begin) % kPageBytes;
  const std::byte* const last = data + bytes - end % kPageBytes;
  if (first >= last) return nullptr;
  check_is_private(first, last);
  return std::make_shared<Adoption>(std::move(segment), data, bytes);
}

}  // namespace tutti::internal::shm
