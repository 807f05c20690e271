// The GPU that --device cuda means.
#pragma once

#include "cuda/device.h"

namespace tutti::tools {

// The first that this process can use; of ranks that go round all that it can use, that of rank `rank`. Throws
// std::runtime_error, by which the command exits with 1, and which says in one line why there is none.
cuda::Device require_gpu(int rank = 0);

}  // namespace tutti::tools
