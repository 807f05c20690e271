// With few queues of the hardware one stream could wait for another, also for one of another rank of the same process.
#pragma once

#include <cstdlib>

namespace tutti::internal {

// Before CUDA is started; the most there are.
inline const int kManyQueues = ::setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 0);

}  // namespace tutti::internal
