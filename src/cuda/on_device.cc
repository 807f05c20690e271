#include "cuda/on_device.h"

#include <cuda_runtime_api.h>

#include "cuda/check.h"
#include "cuda/driver.h"

namespace tutti::internal::cuda {
namespace {

// Asking an event how it stands, or pinning memory, ends a capture that another thread has under way, unless the thread
// says that it may.
int relax_captures() {
  cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
  cudaThreadExchangeStreamCaptureMode(&mode);
  return mode;
}

}  // namespace

int current_device() {
  int device = -1;
  check(cudaGetDevice(&device));
  return device;
}

OnDevice::OnDevice() : capture_mode_(relax_captures()) {}
// A thread that has never used a device has device 0 by name only. Setting that, to restore it, would make a context
// there, of hundreds of megabytes. What throws here leaves the mode of captures restored: by then the other constructor
// is done.
OnDevice::OnDevice(int device) : OnDevice() {
  if (driver() == nullptr || driver()->ctx_get_current(&before_) != CUDA_SUCCESS) before_ = nullptr;
  if (before_ != nullptr && current_device() == device) return;
  check(cudaSetDevice(device));
  changed_ = true;
}
OnDevice::OnDevice(int device, std::nothrow_t) noexcept : OnDevice() {
  if (driver() != nullptr && driver()->ctx_get_current(&before_) == CUDA_SUCCESS)
    changed_ = cudaSetDevice(device) == cudaSuccess;
}
OnDevice::~OnDevice() {
  if (changed_ && driver() != nullptr) driver()->ctx_set_current(before_);
  auto mode = static_cast<cudaStreamCaptureMode>(capture_mode_);
  cudaThreadExchangeStreamCaptureMode(&mode);
}

}  // namespace tutti::internal::cuda
