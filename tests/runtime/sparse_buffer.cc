#include "runtime/sparse_buffer.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <stdexcept>

namespace tutti::internal {
namespace {

constexpr std::size_t kPage = 4096, kEvery = std::size_t{256} << 20, kTrash = std::size_t{64} << 20;

void* map(void* at, std::size_t bytes, int flags, int descriptor) {
  void* const mapped = mmap(at, bytes, PROT_READ | PROT_WRITE, flags, descriptor, 0);
  if (mapped == MAP_FAILED) throw std::runtime_error("a sparse buffer has no room");
  return mapped;
}

}  // namespace

SparseBuffer::SparseBuffer(std::size_t rows, std::size_t row_bytes, bool of_input)
    : mapped_((rows * row_bytes + kPage - 1) / kPage * kPage + kPage) {
  data_ = static_cast<std::uint8_t*>(map(nullptr, mapped_, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1));
  madvise(data_, mapped_, MADV_NOHUGEPAGE);
  for (std::size_t row = 0; row < rows; ++row) {
    const std::size_t begin = row * row_bytes, end = begin + row_bytes;
    for (std::size_t at = begin; at < end; at += kEvery) probes_.push_back({at, std::min(at + kPage, end)});
    probes_.push_back({end - std::min(kPage, row_bytes), end});
  }
  if (of_input) return;
  // All of it is one piece of memory again and again, but for the pages of the probes.
  const int trash = memfd_create("tutti-test", MFD_CLOEXEC);
  if (trash < 0 || ftruncate(trash, kTrash) != 0) throw std::runtime_error("a sparse buffer has no memory");
  for (std::size_t at = 0; at < mapped_; at += kTrash)
    map(data_ + at, std::min(kTrash, mapped_ - at), MAP_SHARED | MAP_FIXED, trash);
  close(trash);
  for (const Range& probe : probes_)
    for (std::size_t at = probe.begin / kPage * kPage; at < probe.end; at += kPage) map_page(at);
}

void SparseBuffer::map_page(std::size_t at) { map(data_ + at, kPage, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1); }

SparseBuffer::~SparseBuffer() { munmap(data_, mapped_); }

}  // namespace tutti::internal
