// The few functions of CUDA's driver that its runtime library does not have, looked up where there is a driver.
#pragma once

#include <cuda.h>

namespace tutti::internal::cuda {

struct Driver {
  decltype(&cuPointerGetAttributes) pointer_get_attributes;
  decltype(&cuCtxGetCurrent) ctx_get_current;
  decltype(&cuCtxSetCurrent) ctx_set_current;
  decltype(&cuStreamWaitValue32) stream_wait_value;
  decltype(&cuStreamWriteValue32) stream_write_value;
};

// nullptr where no driver is installed. Thread-safe; the first call loads libcuda.so.1, but starts nothing in it.
const Driver* driver();

}  // namespace tutti::internal::cuda
