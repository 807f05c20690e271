#include "executor/symmetric_memory.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <limits>
#include <string>

#include "tutti/error.h"

namespace tutti::internal {
namespace {

[[noreturn]] void fail(std::size_t bytes) {
  throw Error(ErrorCode::system, "no memory for " + std::to_string(bytes) + " bytes");
}

}  // namespace

std::size_t SymmetricMemory::whole_pages(std::size_t bytes) {
  if (bytes > std::numeric_limits<std::ptrdiff_t>::max()) fail(bytes);  // rounding up would overflow
  return std::max<std::size_t>((bytes + 4095) / 4096 * 4096, 4096);
}

SymmetricMemory::SymmetricMemory(std::shared_ptr<std::byte> reachable, std::size_t bytes)
    : reachable_(std::move(reachable)), bytes_(bytes), data_(reachable_.get()), process_(::getpid()) {
  const std::size_t pages = whole_pages(bytes);
  if (data_ != nullptr) return;
  void* at = ::mmap(nullptr, pages, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (at == MAP_FAILED) fail(bytes);
  data_ = static_cast<std::byte*>(at);
}

SymmetricMemory::~SymmetricMemory() {
  if (::getpid() != process_) {  // what they hold is never given back
    static_cast<void>(new auto(std::move(registration_)));
    static_cast<void>(new auto(std::move(reachable_)));
    return;
  }
  registration_.reset();
  if (reachable_ == nullptr) ::munmap(data_, whole_pages(bytes_));
}

}  // namespace tutti::internal
