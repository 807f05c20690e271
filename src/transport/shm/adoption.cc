#include "transport/shm/adoption.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>
#include <string>
#include <utility>

#include "memory/address_space.h"
#include "tutti/error.h"

namespace tutti::internal::shm {
namespace {

std::uintptr_t start_of(const std::byte* at) { return reinterpret_cast<std::uintptr_t>(at); }

// Throws where the pages are not what malloc(), operator new and anonymous mmap() give.
void check_is_private(const std::byte* first, const std::byte* last) {
  const auto refuse = [](const std::string& why) {
    throw Error(ErrorCode::invalid_argument, "adopt: the memory cannot be shared in place: " + why);
  };
  const auto ranges = mapped_in(start_of(first), start_of(last));
  if (!ranges) refuse("/proc/self/maps, which says what it is, cannot be read");
  std::uintptr_t next = start_of(first);
  for (const MappedRange& range : *ranges) {
    if (range.begin > next) break;
    const bool has_name = !range.name.empty() && range.name != "[heap]" && !range.name.starts_with("[anon:");
    if (range.name.starts_with("/memfd:tutti")) refuse("it is shared already");
    if (range.inode != 0 || has_name) refuse("it belongs to " + range.name);
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
  std::uint64_t offset_of_pages() const { return part_.offset - start_of(part_.data) % kPageBytes; }
  std::size_t pages_bytes() const { return whole_pages(start_of(part_.data) % kPageBytes + part_.bytes); }

  const std::shared_ptr<Segment> segment_;
  Adopted::Part part_{};
  const pid_t process_ = ::getpid();  // a forked child shares the pages with its parent, and leaves them as they are
};

Adoption::Adoption(std::shared_ptr<Segment> segment, std::byte* data, std::size_t bytes)
    : segment_(std::move(segment)) {
  part_.data = data;
  part_.bytes = bytes;
  part_.first = data + (0 - start_of(data)) % kPageBytes;
  part_.last = data + bytes - start_of(data + bytes) % kPageBytes;
  const std::size_t before = start_of(data) % kPageBytes, shared = static_cast<std::size_t>(part_.last - part_.first);
  part_.offset = segment_->allocate(whole_pages(before + bytes)) + before;
  try {
    const std::uint64_t offset = part_.offset + static_cast<std::uint64_t>(part_.first - data);
    std::memcpy(segment_->at(offset), part_.first, shared);
    if (::mmap(part_.first, shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED | MAP_POPULATE, segment_->fd(),
               static_cast<off_t>(offset)) == MAP_FAILED)
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
  if (!was_there || Adopted::make_private(segment_->fd(), part_)) segment_->free(offset_of_pages(), pages_bytes());
}

}  // namespace

std::shared_ptr<void> adopt(std::shared_ptr<Segment> segment, std::byte* data, std::size_t bytes) {
  const std::uintptr_t begin = start_of(data), end = begin + bytes;
  const std::byte* const first = data + (0 - begin) % kPageBytes;
  const std::byte* const last = data + bytes - end % kPageBytes;
  if (first >= last) return nullptr;
  check_is_private(first, last);
  return std::make_shared<Adoption>(std::move(segment), data, bytes);
}

}  // namespace tutti::internal::shm
