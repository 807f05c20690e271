// The GPUs that --device cuda means.
#pragma once

#include <vector>

#include "cuda/device.h"

namespace tutti::internal::tools {

// The first that this process can use, and all of them. Throw std::runtime_error, by which the command exits with 1,
// and which says in one line why there is none. Starts CUDA in this process: a child that it forks later, and that
// executes no program, cannot use it.
cuda::Device require_gpu();
std::vector<cuda::Device> require_gpus();

// Throws the same, but leaves CUDA unstarted: a child looks, and ends. Call it before the first thread starts.
void require_gpu_of_children();

}  // namespace tutti::internal::tools
