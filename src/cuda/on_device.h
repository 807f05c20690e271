// Which device the calling thread uses.
#pragma once

#include <new>

struct CUctx_st;  // CUDA's

namespace tutti::internal::cuda {

// The calling thread's, as cudaGetDevice() has it.
int current_device();

// Makes `device` the calling thread's current one while it lives. No other device is touched for it, and no capture
// that is under way in this process is ended by what the thread calls meanwhile. What follows makes one itself, but for
// copies: a thread whose current device has no context yet would make one there.
class OnDevice {
 public:
  explicit OnDevice(int device);
  OnDevice(int device, std::nothrow_t) noexcept;  // for destructors: tries
  ~OnDevice();
  OnDevice(const OnDevice&) = delete;
  OnDevice& operator=(const OnDevice&) = delete;

 private:
  OnDevice();
  CUctx_st* before_ = nullptr;  // the context to restore, which may be none
  bool changed_ = false;
  int capture_mode_ = 0;
};

}  // namespace tutti::internal::cuda
