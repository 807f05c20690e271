#include "cuda/memory.h"

#include <cuda_runtime_api.h>

#include "cuda/check.h"
#include "cuda/driver.h"
#include "cuda/on_device.h"
#include "tutti/error.h"

namespace tutti::internal::cuda {

bool is_possible() { return driver() != nullptr; }

Location location_of(const void* pointer) {
  const Driver* const found = driver();
  if (found == nullptr) return {};
  unsigned type = 0, managed = 0;
  int device = -1;
  CUpointer_attribute wanted[] = {CU_POINTER_ATTRIBUTE_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_IS_MANAGED,
                                  CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL};
  void* values[] = {&type, &managed, &device};
  const CUresult result = found->pointer_get_attributes(3, wanted, values, reinterpret_cast<CUdeviceptr>(pointer));
  // A driver that was never started, or has gone at the end of the process, has nothing to point to; and of what is not
  // CUDA's its documentation says two things, of which one is an error.
  for (const CUresult of_others :
       {CUDA_ERROR_NOT_INITIALIZED, CUDA_ERROR_DEINITIALIZED, CUDA_ERROR_INVALID_VALUE, CUDA_ERROR_INVALID_CONTEXT})
    if (result == of_others) return {};
  if (result != CUDA_SUCCESS)
    throw Error(ErrorCode::system, "CUDA: the driver does not say what memory a pointer points to: error " +
                                       std::to_string(result) + ", as it has failed before");
  if (managed != 0) return {MemoryKind::managed, device};
  if (type == CU_MEMORYTYPE_DEVICE) return {MemoryKind::device, device};
  if (type == CU_MEMORYTYPE_HOST) return {MemoryKind::pinned, device};
  return {};
}

DeviceMemory::DeviceMemory(int device, std::size_t bytes) : device_(device) {
  const OnDevice here(device);
  void* data = nullptr;
  check(cudaMalloc(&data, bytes == 0 ? 1 : bytes));
  data_ = static_cast<std::byte*>(data);
}
DeviceMemory::~DeviceMemory() {
  const OnDevice here(device_, std::nothrow);
  cudaFree(data_);
}

PinnedMemory::PinnedMemory(int device, std::size_t bytes) : device_(device), bytes_(bytes) {
  const OnDevice here(device);
  void* data = nullptr;
  check(cudaHostAlloc(&data, bytes == 0 ? 1 : bytes, cudaHostAllocPortable));
  data_ = static_cast<std::byte*>(data);
}
PinnedMemory::~PinnedMemory() {
  const OnDevice here(device_, std::nothrow);
  cudaFreeHost(data_);
}

Pinned::Pinned(int device, std::byte* data, std::size_t bytes) : device_(device), data_(data) {
  const OnDevice here(device);
  check(cudaHostRegister(data, bytes, cudaHostRegisterPortable));
}
Pinned::~Pinned() {
  const OnDevice here(device_, std::nothrow);
  cudaHostUnregister(data_);
}

}  // namespace tutti::internal::cuda
