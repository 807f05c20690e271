#include "fake_cuda/regions.h"

#include <fmt/format.h>
#include <sys/mman.h>

#include <cstdlib>
#include <cstring>

namespace tutti::internal::fake {
namespace {

constexpr std::size_t kPage = 4096, kAlignment = 256;
constexpr int kGarbage = 0xcb;

std::size_t whole_pages(std::size_t bytes) { return (bytes + kPage - 1) / kPage * kPage; }

// Addresses that nothing else will ever have, and that fault. Not given back, so that what was freed is still known; an
// address costs nothing. After them and before them are some more that fault.
std::byte* faulting_addresses(std::size_t bytes) {
  void* const begin =
      ::mmap(nullptr, whole_pages(bytes) + 2 * kPage, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return begin == MAP_FAILED ? nullptr : static_cast<std::byte*>(begin) + kPage + kAlignment;
}

const char* name_of(Kind kind) {
  switch (kind) {
    case Kind::device: return "device memory";
    case Kind::pinned: return "pinned memory";
    case Kind::registered: return "registered memory";
    default: return "managed memory";
  }
}

}  // namespace

Region* Regions::add(Kind kind, int device, std::byte* data, std::size_t bytes, std::byte* alias) {
  Region* const region = new Region{kind, device, data, bytes, alias, newest_.load(std::memory_order_relaxed)};
  newest_.store(region, std::memory_order_release);
  return region;
}

Region* Regions::allocate(Kind kind, int device, std::size_t bytes) {
  const std::lock_guard lock(changing_);
  std::size_t used = 0;
  for (const Region* each = newest_; each != nullptr; each = each->older) {
    if (each->live && each->kind == Kind::device && each->device == device) used += each->bytes;
  }
  if (kind == Kind::device && (bytes > kDeviceBytes || used > kDeviceBytes - bytes)) return nullptr;
  // From the heap, so that AddressSanitizer knows its bounds.
  const bool hidden = kind == Kind::device;
  const std::size_t alignment = hidden ? kAlignment : kPage;
  auto* const memory =
      static_cast<std::byte*>(std::aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment));
  std::byte* const data = hidden ? faulting_addresses(bytes) : memory;
  if (memory == nullptr || data == nullptr) {
    std::free(memory);
    return nullptr;
  }
  std::memset(memory, kGarbage, bytes);
  return add(kind, device, data, bytes, memory);
}

Region* Regions::enlist(int device, std::byte* data, std::size_t bytes) {
  const std::lock_guard lock(changing_);
  for (const Region* each = newest_; each != nullptr; each = each->older) {
    if (each->live && data < each->data + each->bytes && each->data < data + bytes) return nullptr;
  }
  return add(Kind::registered, device, data, bytes, data);
}

void Regions::remove(Region& region) {
  const std::lock_guard lock(changing_);
  region.live = false;
  if (region.kind != Kind::registered) std::free(region.alias);
}

const Region* Regions::holding(const void* pointer) const {
  const auto* const at = static_cast<const std::byte*>(pointer);
  for (const Region* each = newest_.load(std::memory_order_acquire); each != nullptr; each = each->older) {
    if (each->live && each->holds(at, 1)) return each;
  }
  return nullptr;
}

Region* Regions::beginning_at(const void* pointer) {
  auto* const found = const_cast<Region*>(holding(pointer));
  return found != nullptr && found->data == pointer ? found : nullptr;
}

std::string Regions::about(const std::byte* at, std::size_t bytes) const {
  for (const Region* each = newest_.load(std::memory_order_acquire); each != nullptr; each = each->older) {
    if (at + bytes <= each->data || at >= each->data + each->bytes + kPage) continue;
    if (each->live)
      return fmt::format("{} + {} of {} of {} bytes on device {}", fmt::ptr(each->data), at - each->data,
                         name_of(each->kind), each->bytes, each->device);
    if (each->kind == Kind::device)
      return fmt::format("{} bytes of device memory of device {} that were freed", each->bytes, each->device);
  }
  return "pageable memory, or none";
}

std::byte* Regions::alias_of(const void* pointer, std::size_t bytes, const Reach& reach, const Region** found) const {
  const auto* const at = static_cast<const std::byte*>(pointer);
  bool pageable = reach.pageable;
  for (const Region* each = newest_.load(std::memory_order_acquire); each != nullptr; each = each->older) {
    const bool live = each->live;
    if (live && each->holds(at, bytes) &&
        (each->kind != Kind::device || reach.kernel_of < 0 || reach.kernel_of == each->device)) {
      if (found != nullptr) *found = each;
      return each->alias + (at - each->data);
    }
    const bool near = at + bytes + kPage > each->data && at < each->data + each->bytes + kPage;
    if (near && (each->kind == Kind::device || (live && at < each->data + each->bytes && each->data < at + bytes)))
      pageable = false;
  }
  if (pageable) return const_cast<std::byte*>(at);
  throw Fault{cudaErrorIllegalAddress,
              fmt::format("a {} touches {} bytes at {}: {}", reach.kernel_of < 0 ? "copy" : "kernel", bytes,
                          fmt::ptr(at), about(at, bytes))};
}

int Regions::live(bool registered) const {
  int count = 0;
  for (const Region* each = newest_.load(std::memory_order_acquire); each != nullptr; each = each->older)
    count += each->live && (each->kind == Kind::registered) == registered ? 1 : 0;
  return count;
}

void Regions::clear() {
  const std::lock_guard lock(changing_);
  Region* each = newest_.exchange(nullptr);
  while (each != nullptr) {
    Region* const older = each->older;
    if (each->live && each->kind != Kind::registered) std::free(each->alias);
    delete each;
    each = older;
  }
}

}  // namespace tutti::internal::fake
