// Of CUDA's runtime library: memory.
#include "fake_cuda/process.h"

using namespace tutti::internal::fake;

namespace {

cudaError_t allocate(void** data, Kind kind, std::size_t bytes) {
  return call([&] {
    *data = nullptr;
    if (const cudaError_t failing = process().count(Call::allocation); failing != cudaSuccess) return failing;
    if (bytes == 0) return kind == Kind::managed ? cudaErrorInvalidValue : cudaSuccess;
    const Region* const region = process().regions.allocate(kind, this_thread().device, bytes);
    if (region == nullptr) return cudaErrorMemoryAllocation;
    *data = region->data;
    return cudaSuccess;
  });
}

// What is put on streams of the device that the memory is on goes before it does; of pinned and managed memory, which
// all devices reach, on any stream.
cudaError_t release(void* data, bool pinned) {
  if (data == nullptr) return call([] { return cudaSuccess; });
  const InDriver in_driver;
  if (const cudaError_t error = enter(); error != cudaSuccess) return remembered(error);
  Region* const region = process().regions.beginning_at(data);
  if (region == nullptr || region->kind == Kind::registered || (region->kind == Kind::pinned) != pinned)
    return remembered(cudaErrorInvalidValue);
  Device& device = process().devices[static_cast<std::size_t>(region->device)];
  if (region->kind == Kind::device) {
    device.finish();
  } else {
    process().finish();
  }
  process().regions.remove(*region);
  return remembered(device.failure());
}

}  // namespace

cudaError_t cudaMalloc(void** data, std::size_t bytes) { return allocate(data, Kind::device, bytes); }
cudaError_t cudaMallocManaged(void** data, std::size_t bytes, unsigned) { return allocate(data, Kind::managed, bytes); }
cudaError_t cudaMallocHost(void** data, std::size_t bytes) { return allocate(data, Kind::pinned, bytes); }
cudaError_t cudaHostAlloc(void** data, std::size_t bytes, unsigned) { return allocate(data, Kind::pinned, bytes); }
cudaError_t cudaFree(void* data) { return release(data, false); }
cudaError_t cudaFreeHost(void* data) { return release(data, true); }

cudaError_t cudaHostRegister(void* data, std::size_t bytes, unsigned) {
  return call([&] {
    if (const cudaError_t failing = process().count(Call::registration); failing != cudaSuccess) return failing;
    // CUDA takes any address; src/cuda/memory.h asks for whole pages.
    if (data == nullptr || bytes == 0 || reinterpret_cast<std::uintptr_t>(data) % 4096 != 0)
      return cudaErrorInvalidValue;
    return process().regions.enlist(this_thread().device, static_cast<std::byte*>(data), bytes) == nullptr
               ? cudaErrorHostMemoryAlreadyRegistered
               : cudaSuccess;
  });
}

// CUDA does not promise to wait for what uses it.
cudaError_t cudaHostUnregister(void* data) {
  const InDriver in_driver;
  if (const cudaError_t error = enter(); error != cudaSuccess) return remembered(error);
  Region* const region = process().regions.beginning_at(data);
  if (region == nullptr || region->kind != Kind::registered) return remembered(cudaErrorHostMemoryNotRegistered);
  process().regions.remove(*region);
  return remembered(current_device().failure());
}
