// Of CUDA's runtime library: devices and errors.
#include <fmt/format.h>

#include <cstdio>

#include "fake_cuda/process.h"

using namespace tutti::internal::fake;

namespace {

constexpr int kMultiprocessors = 1;

bool exists(int device) { return device >= 0 && device < process().device_count; }

struct Said {
  cudaError_t error;
  const char* name;
  const char* text;
};
// Those that are told apart here or in src/cuda; CUDA's own words.
constexpr Said kSaid[] = {
    {cudaSuccess, "cudaSuccess", "no error"},
    {cudaErrorInvalidValue, "cudaErrorInvalidValue", "invalid argument"},
    {cudaErrorMemoryAllocation, "cudaErrorMemoryAllocation", "out of memory"},
    {cudaErrorInvalidConfiguration, "cudaErrorInvalidConfiguration", "invalid configuration argument"},
    {cudaErrorInvalidMemcpyDirection, "cudaErrorInvalidMemcpyDirection", "invalid copy direction for memcpy"},
    {cudaErrorInsufficientDriver, "cudaErrorInsufficientDriver",
     "CUDA driver version is insufficient for CUDA runtime version"},
    {cudaErrorDevicesUnavailable, "cudaErrorDevicesUnavailable", "CUDA-capable device(s) is/are busy or unavailable"},
    {cudaErrorInvalidDeviceFunction, "cudaErrorInvalidDeviceFunction", "invalid device function"},
    {cudaErrorNoDevice, "cudaErrorNoDevice", "no CUDA-capable device is detected"},
    {cudaErrorInvalidDevice, "cudaErrorInvalidDevice", "invalid device ordinal"},
    {cudaErrorNoKernelImageForDevice, "cudaErrorNoKernelImageForDevice",
     "no kernel image is available for execution on the device"},
    {cudaErrorECCUncorrectable, "cudaErrorECCUncorrectable", "uncorrectable ECC error encountered"},
    {cudaErrorIllegalState, "cudaErrorIllegalState", "the operation cannot be performed in the present state"},
    {cudaErrorInvalidResourceHandle, "cudaErrorInvalidResourceHandle", "invalid resource handle"},
    {cudaErrorNotReady, "cudaErrorNotReady", "device not ready"},
    {cudaErrorIllegalAddress, "cudaErrorIllegalAddress", "an illegal memory access was encountered"},
    {cudaErrorMisalignedAddress, "cudaErrorMisalignedAddress", "misaligned address"},
    {cudaErrorLaunchFailure, "cudaErrorLaunchFailure", "unspecified launch failure"},
    {cudaErrorHostMemoryAlreadyRegistered, "cudaErrorHostMemoryAlreadyRegistered",
     "part or all of the requested memory range is already mapped"},
    {cudaErrorHostMemoryNotRegistered, "cudaErrorHostMemoryNotRegistered",
     "pointer does not correspond to a registered memory region"},
    {cudaErrorNotPermitted, "cudaErrorNotPermitted", "operation not permitted"},
    {cudaErrorNotSupported, "cudaErrorNotSupported", "operation not supported"},
    {cudaErrorStreamCaptureUnsupported, "cudaErrorStreamCaptureUnsupported",
     "operation not permitted when stream is capturing"},
    {cudaErrorStreamCaptureImplicit, "cudaErrorStreamCaptureImplicit",
     "operation would make the legacy stream depend on a capturing blocking stream"},
};

const Said& said(cudaError_t error) {
  static constexpr Said kUnknown{cudaErrorUnknown, "an error", "unrecognized error code"};
  for (const Said& each : kSaid) {
    if (each.error == error) return each;
  }
  return kUnknown;
}

}  // namespace

const char* cudaGetErrorName(cudaError_t error) { return said(error).name; }
const char* cudaGetErrorString(cudaError_t error) { return said(error).text; }

cudaError_t cudaPeekAtLastError() {
  const cudaError_t lasting = current_device().failure();
  return lasting != cudaSuccess ? lasting : this_thread().last_error;
}
cudaError_t cudaGetLastError() {
  const cudaError_t error = cudaPeekAtLastError();
  this_thread().last_error = cudaSuccess;
  return error;
}

cudaError_t cudaDriverGetVersion(int* version) {
  *version = process().device_count == kNoDriver ? 0 : CUDART_VERSION;
  return cudaSuccess;
}

cudaError_t cudaGetDeviceCount(int* count) {
  *count = 0;
  if (const cudaError_t error = enter(); error != cudaSuccess) return remembered(error);
  *count = process().device_count;
  return cudaSuccess;
}

cudaError_t cudaGetDevice(int* device) {
  if (const cudaError_t error = enter(); error != cudaSuccess) return remembered(error);
  *device = this_thread().device;
  return cudaSuccess;
}
cudaError_t cudaSetDevice(int device) {
  if (const cudaError_t error = enter(); error != cudaSuccess) return remembered(error);
  if (!exists(device)) return remembered(cudaErrorInvalidDevice);
  this_thread().device = device;
  this_thread().has_context = true;
  return cudaSuccess;
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device) {
  if (const cudaError_t error = enter(); error != cudaSuccess) return remembered(error);
  if (!exists(device)) return remembered(cudaErrorInvalidDevice);
  *properties = {};
  std::snprintf(properties->name, sizeof properties->name, "fake GPU %d", device);
  properties->major = 9;
  properties->multiProcessorCount = kMultiprocessors;
  properties->totalGlobalMem = kDeviceBytes;
  properties->pciBusID = device + 1;
  return cudaSuccess;
}

cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int device) {
  if (const cudaError_t error = enter(); error != cudaSuccess) return remembered(error);
  if (!exists(device)) return remembered(cudaErrorInvalidDevice);
  switch (attribute) {
    case cudaDevAttrMultiProcessorCount: *value = kMultiprocessors; return cudaSuccess;
    case cudaDevAttrComputeCapabilityMajor: *value = 9; return cudaSuccess;
    case cudaDevAttrComputeCapabilityMinor: *value = 0; return cudaSuccess;
    default: return remembered(cudaErrorNotSupported);
  }
}

// A machine whose GPUs have no link: what is of another device goes by way of the host.
cudaError_t cudaDeviceGetP2PAttribute(int* value, cudaDeviceP2PAttr, int from, int to) {
  if (const cudaError_t error = enter(); error != cudaSuccess) return remembered(error);
  if (!exists(from) || !exists(to)) return remembered(cudaErrorInvalidDevice);
  if (from == to) return remembered(cudaErrorInvalidValue);
  *value = 0;
  return cudaSuccess;
}

cudaError_t cudaDeviceGetPCIBusId(char* id, int bytes, int device) {
  if (const cudaError_t error = enter(); error != cudaSuccess) return remembered(error);
  if (!exists(device) || bytes < 13) return remembered(cudaErrorInvalidValue);
  std::snprintf(id, static_cast<std::size_t>(bytes), "0000:%02x:00.0", static_cast<unsigned>(device + 1));
  return cudaSuccess;
}

cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  return call([&] {
    *least = 0;
    *greatest = -5;
    return cudaSuccess;
  });
}

cudaError_t cudaDeviceSynchronize() {
  return call([&] {
    if (current_device().any_capturing()) return cudaErrorStreamCaptureUnsupported;
    const Synchronizing synchronizing;
    current_device().finish();
    return current_device().failure();
  });
}
