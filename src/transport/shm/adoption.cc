#include "transport/shm/adoption.h"

#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>
#include <utility>

#include "tutti/error.h"

namespace tutti::internal::shm {
namespace {

constexpr std::size_t kTwiceBytes = 4 << 20;  // that is there twice while memory becomes private

std::uintptr_t start_of(const std::byte* at) { return reinterpret_cast<std::uintptr_t>(at); }

bool is_segment(const MappedRange& range) { return range.name.starts_with("/memfd:tutti"); }

// Throws where the pages are not what malloc(), operator new and anonymous mmap() give. Private pages of a segment are:
// those of memory that was adopted before a failure.
void check_is_private(Segment& segment, const std::byte* first, const std::byte* last) {
  const auto refuse = [](const std::string& why) {
    throw Error(ErrorCode::invalid_argument, "adopt: the memory cannot be shared in place: " + why);
  };
  const auto ranges = segment.adopted().mapped_in(first, last);
  if (!ranges) refuse("/proc/self/maps, which says what it is, cannot be read");
  std::uintptr_t next = start_of(first);
  for (const MappedRange& range : *ranges) {
    if (range.begin > next) break;
    const bool has_name = !range.name.empty() && range.name != "[heap]" && !range.name.starts_with("[anon:");
    if (is_segment(range) && range.permissions == "rw-s") refuse("it is shared already");
    if ((range.inode != 0 || has_name) && !is_segment(range)) refuse("it belongs to " + range.name);
    if (range.permissions != "rw-p") refuse("it is \"" + range.permissions + "\" to the system, not \"rw-p\"");
    next = range.end;
  }
  if (next < start_of(last)) refuse("nothing is mapped at a part of it");
}

// One part, for as long as it is adopted.
class Adoption {
 public:
  Adoption(std::shared_ptr<Segment> segment, std::byte* data, std::size_t bytes);
  ~Adoption();
  Adoption(const Adoption&) = delete;
  Adoption& operator=(const Adoption&) = delete;

 private:
  std::size_t edge() const { return start_of(part_.data) % kPageBytes; }
  std::uint64_t offset_of(const std::byte* at) const {
    return part_.offset + static_cast<std::uint64_t>(at - part_.data);
  }
  void free_pages() { segment_->free(part_.offset - edge(), whole_pages(edge() + part_.bytes)); }
  bool make_private() noexcept;
  bool make_private(std::byte* from, std::byte* to) noexcept;

  std::shared_ptr<Segment> segment_;
  Adopted::Part part_{};
  const pid_t process_ = ::getpid();
};

Adoption::Adoption(std::shared_ptr<Segment> segment, std::byte* data, std::size_t bytes)
    : segment_(std::move(segment)) {
  part_.data = data;
  part_.bytes = bytes;
  part_.first = data + (0 - start_of(data)) % kPageBytes;
  part_.last = data + bytes - start_of(data + bytes) % kPageBytes;
  part_.offset = segment_->allocate(whole_pages(edge() + bytes)) + edge();
  try {
    segment_->adopted().add(part_);
    const auto shared = static_cast<std::size_t>(part_.last - part_.first);
    std::byte* const there = segment_->at(offset_of(part_.first));
    std::memcpy(there, part_.first, shared);
    if (::mmap(part_.first, shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED | MAP_POPULATE, segment_->fd(),
               static_cast<off_t>(offset_of(part_.first))) != MAP_FAILED)
      return;
    const int error = errno;
    // The system may have taken away what was there first.
    if (::mmap(part_.first, shared, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0) ==
        part_.first)
      std::memcpy(part_.first, there, shared);
    errno = error;
    throw_system_error("cannot map the segment at the buffer's address");
  } catch (...) {
    segment_->adopted().remove(part_);
    free_pages();
    throw;
  }
}

// A forked child shares the pages with its parent, and leaves them as they are.
Adoption::~Adoption() {
  if (::getpid() != process_) {
    static_cast<void>(new auto(std::move(segment_)));
    return;
  }
  const bool was_there = segment_->adopted().remove(part_);
  if (!was_there || make_private()) free_pages();
}

// The caller may have unmapped the memory, and something else may be there by now: that is left alone. False: the
// system refuses to map private pages, and those that are left stay shared.
bool Adoption::make_private() noexcept try {
  struct stat file {};
  const auto ranges = segment_->adopted().mapped_in(part_.first, part_.last);
  if (!ranges || ::fstat(segment_->fd(), &file) != 0) return false;
  for (const MappedRange& range : *ranges) {
    std::byte* const from = part_.first + (std::max(range.begin, start_of(part_.first)) - start_of(part_.first));
    std::byte* const to = part_.last - (start_of(part_.last) - std::min(range.end, start_of(part_.last)));
    const std::uint64_t offset = range.offset + (start_of(from) - range.begin);
    if (!is_segment(range) || range.inode != file.st_ino || offset != offset_of(from)) continue;
    if (!make_private(from, to)) return false;
  }
  return true;
} catch (const std::exception&) {  // no memory for the list
  return false;
}

bool Adoption::make_private(std::byte* from, std::byte* to) noexcept {
  for (std::byte* at = from; at < to;) {
    const std::size_t bytes = std::min(kTwiceBytes, static_cast<std::size_t>(to - at));
    constexpr int kHow = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED;
    if (::mmap(at, bytes, PROT_READ | PROT_WRITE, kHow, -1, 0) == MAP_FAILED) return false;
    std::memcpy(at, segment_->at(offset_of(at)), bytes);
    segment_->discard(offset_of(at), bytes);
    at += bytes;
  }
  return true;
}

}  // namespace

std::shared_ptr<void> adopt(std::shared_ptr<Segment> segment, std::byte* data, std::size_t bytes) {
  const std::uintptr_t begin = start_of(data), end = begin + bytes;
  const std::byte* const first = data + (0 - begin) % kPageBytes;
  const std::byte* const last = data + bytes - end % kPageBytes;
  if (first >= last) return nullptr;
  check_is_private(*segment, first, last);
  return std::make_shared<Adoption>(std::move(segment), data, bytes);
}

}  // namespace tutti::internal::shm
