// Memory of the host, as allocate() promises it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>

namespace tutti::nccl {

inline void* allocate_on_host(std::size_t size) {
  constexpr std::size_t kPage = 4096;
  if (size > SIZE_MAX - kPage) return nullptr;
  return std::aligned_alloc(kPage, size == 0 ? kPage : (size + kPage - 1) / kPage * kPage);
}

}  // namespace tutti::nccl
