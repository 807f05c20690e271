// Buffers of every kind of memory, for tests of collectives over them.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "cuda/check.h"
#include "tutti/types.h"

namespace tutti::internal {

inline constexpr MemoryKind kMemoryKinds[] = {MemoryKind::host, MemoryKind::pinned, MemoryKind::device,
                                              MemoryKind::managed};

class DeviceBuffer {
 public:
  DeviceBuffer(MemoryKind kind, std::size_t bytes) : kind_(kind), bytes_(bytes) {
    void* data = nullptr;
    const std::size_t some = bytes + 64;
    switch (kind) {
      case MemoryKind::pinned: cuda::check(cudaHostAlloc(&data, some, cudaHostAllocPortable)); break;
      case MemoryKind::device: cuda::check(cudaMalloc(&data, some)); break;
      case MemoryKind::managed: cuda::check(cudaMallocManaged(&data, some, cudaMemAttachGlobal)); break;
      default: data = std::malloc(some); break;
    }
    data_ = static_cast<std::byte*>(data);
  }
  DeviceBuffer(MemoryKind kind, const std::vector<std::byte>& values) : DeviceBuffer(kind, values.size()) {
    write(values);
  }
  ~DeviceBuffer() {
    switch (kind_) {
      case MemoryKind::pinned: cudaFreeHost(data_); break;
      case MemoryKind::device:
      case MemoryKind::managed: cudaFree(data_); break;
      default: std::free(data_); break;
    }
  }
  DeviceBuffer(const DeviceBuffer&) = delete;
  DeviceBuffer& operator=(const DeviceBuffer&) = delete;

  std::byte* data() const { return data_; }
  bool is_on_host() const { return kind_ == MemoryKind::host || kind_ == MemoryKind::pinned; }

  // Both block, and come after whatever the default stream was given.
  void write(const std::vector<std::byte>& values) {
    if (is_on_host()) {
      if (!values.empty()) std::memcpy(data_, values.data(), values.size());
    } else {
      cuda::check(cudaMemcpy(data_, values.data(), values.size(), cudaMemcpyDefault));
      cuda::check(cudaStreamSynchronize(cudaStreamLegacy));  // it returns before all is there
    }
  }
  std::vector<std::byte> read() const {
    std::vector<std::byte> values(bytes_);
    if (is_on_host()) {
      if (bytes_ > 0) std::memcpy(values.data(), data_, bytes_);
    } else {
      cuda::check(cudaMemcpy(values.data(), data_, bytes_, cudaMemcpyDefault));
    }
    return values;
  }

 private:
  MemoryKind kind_;
  std::size_t bytes_;
  std::byte* data_ = nullptr;
};

}  // namespace tutti::internal
