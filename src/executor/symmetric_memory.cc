#include "executor/symmetric_memory.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <limits>
#include <string>

#include "tutti/error.h"

namespace tutti::runtime {
namespace {

[[noreturn]] void fail(std::size_t bytes) {
  throw Error(ErrorCode::system, "no memory for " + std::to_string(bytes) + " bytes");
}

// At least one: who asks for nothing gets an address too.
std::size_t whole_pages(std::size_t bytes) {
  if (bytes > std::numeric_limits<std::ptrdiff_t>::max()) fail(bytes);  // rounding up would overflow
  return std::max<std::size_t>((bytes + 4095) / 4096 * 4096, 4096);
}

}  // namespace

SymmetricMemory::SymmetricMemory(std::shared_ptr<shm::Segment> segment, std::size_t bytes)
    : segment_(std::move(segment)), bytes_(bytes), process_(::getpid()) {
  const std::size_t pages = whole_pages(bytes);
  if (segment_ != nullptr) {
    offset_ = segment_->allocate(pages);
    data_ = segment_->at(offset_);
  } else {
    void* at = ::mmap(nullptr, pages, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED) fail(bytes);
    data_ = static_cast<std::byte*>(at);
  }
}

SymmetricMemory::~SymmetricMemory() {
  if (::getpid() != process_) {
    if (registration_ != nullptr) new auto(std::move(registration_));  // it is never given back
    return;
  }
  registration_.reset();
  const std::size_t pages = whole_pages(bytes_);
  if (segment_ != nullptr) {
    segment_->free(offset_, pages);
  } else {
    ::munmap(data_, pages);
  }
}

}  // namespace tutti::runtime
