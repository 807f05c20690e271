#include "nccl/device.h"

#include <cuda_runtime_api.h>

#include "nccl/host_memory.h"

namespace tutti::nccl {

int current_device() {
  int devices = 0, device = -1;
  if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) return -1;
  return cudaGetDevice(&device) == cudaSuccess ? device : -1;
}

void* allocate(std::size_t size) {
  if (current_device() < 0) return allocate_on_host(size);
  void* memory = nullptr;
  return cudaMalloc(&memory, size == 0 ? 1 : size) == cudaSuccess ? memory : nullptr;
}

bool release(void* memory) {
  if (memory != nullptr && current_device() >= 0) return cudaFree(memory) == cudaSuccess;
  std::free(memory);
  return true;
}

}  // namespace tutti::nccl
