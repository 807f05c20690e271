// In place of src/cuda/driver.cc: the driver's functions that it looks up.
#include "cuda/driver.h"

#include <sched.h>
#include <time.h>

#include <algorithm>

#include "fake_cuda/process.h"

namespace tutti::internal::cuda {
namespace {

using namespace fake;

CUresult pointer_get_attributes(unsigned count, CUpointer_attribute* wanted, void** values, CUdeviceptr pointer) {
  const InDriver in_driver;
  if (!process().started) return CUDA_ERROR_NOT_INITIALIZED;
  const Region* const region = process().regions.holding(reinterpret_cast<const void*>(pointer));
  const bool on_host = region != nullptr && (region->kind == Kind::pinned || region->kind == Kind::registered);
  for (unsigned i = 0; i < count; ++i) {
    switch (wanted[i]) {
      case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
        *static_cast<unsigned*>(values[i]) = region == nullptr ? 0
                                             : on_host         ? CU_MEMORYTYPE_HOST
                                                               : CU_MEMORYTYPE_DEVICE;
        break;
      case CU_POINTER_ATTRIBUTE_IS_MANAGED:
        *static_cast<unsigned*>(values[i]) = region != nullptr && region->kind == Kind::managed;
        break;
      case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
        *static_cast<int*>(values[i]) = region == nullptr ? -2 : region->device;
        break;
      default: return CUDA_ERROR_NOT_SUPPORTED;
    }
  }
  return CUDA_SUCCESS;
}

// A context is its device.
CUresult ctx_get_current(CUcontext* context) {
  *context = this_thread().has_context ? reinterpret_cast<CUcontext>(&current_device()) : nullptr;
  return CUDA_SUCCESS;
}
CUresult ctx_set_current(CUcontext context) {
  this_thread().has_context = context != nullptr;
  this_thread().device =
      context == nullptr ? 0 : static_cast<int>(reinterpret_cast<Device*>(context) - process().devices.data());
  return CUDA_SUCCESS;
}

// Where the word is. Throws Fault.
std::atomic_ref<std::uint32_t> word_at(CUdeviceptr address) {
  return std::atomic_ref(*reinterpret_cast<std::uint32_t*>(
      process().regions.alias_of(reinterpret_cast<const void*>(address), sizeof(std::uint32_t), {})));
}

// Spins a little, then sleeps ever longer.
void pause(int round) {
  if (round < 50) {
    ::sched_yield();
    return;
  }
  const timespec time{0, std::min(round * 1000l, 500'000l)};
  ::nanosleep(&time, nullptr);
}

// A word that CUDA does not know is refused at once.
template <class Work>
CUresult on_word(CUstream handle, CUdeviceptr address, const Work& work) {
  const InDriver in_driver;
  Stream* const stream = stream_of(handle);
  if (stream == nullptr || &stream->device != &current_device()) return CUDA_ERROR_INVALID_HANDLE;
  if (address % sizeof(std::uint32_t) != 0 ||
      process().regions.holding(reinterpret_cast<const void*>(address)) == nullptr)
    return CUDA_ERROR_INVALID_VALUE;
  if (stream->device.failure() != cudaSuccess) return static_cast<CUresult>(stream->device.failure());
  stream->device.enqueue(*stream, [stream, work] { work(*stream); });
  return CUDA_SUCCESS;
}

CUresult stream_wait_value(CUstream handle, CUdeviceptr address, cuuint32_t value, unsigned flags) {
  if (flags != CU_STREAM_WAIT_VALUE_GEQ) return CUDA_ERROR_NOT_SUPPORTED;
  return on_word(handle, address, [=](const Stream& stream) {
    const auto reached = [&](std::memory_order order) {
      return static_cast<std::int32_t>(word_at(address).load(order) - value) >= 0;
    };
    for (int round = 0; !reached(std::memory_order_relaxed); ++round) {
      if (stream.cancelled()) return;
      pause(round);
    }
    reached(std::memory_order_acquire);
  });
}

CUresult stream_write_value(CUstream handle, CUdeviceptr address, cuuint32_t value, unsigned flags) {
  if (flags != CU_STREAM_WRITE_VALUE_DEFAULT) return CUDA_ERROR_NOT_SUPPORTED;
  return on_word(handle, address, [=](const Stream&) { word_at(address).store(value, std::memory_order_release); });
}

}  // namespace

const Driver* driver() {
  static constexpr Driver kDriver{pointer_get_attributes, ctx_get_current, ctx_set_current, stream_wait_value,
                                  stream_write_value};
  return process().device_count == kNoDriver ? nullptr : &kDriver;
}

}  // namespace tutti::internal::cuda
