// A GPU to train on. Includes nothing of CUDA's, and is there without it.
#pragma once

#include <memory>

#include "trainer/device.h"

namespace tutti::trainer {

// The device that cudaSetDevice() takes as `index`, with a stream of its own. It is the calling thread's current one
// while it lives, and only that thread uses it. What is released is kept for arrays of the same size, of which each
// training step makes the same. Throws Error{system} where CUDA refuses, Error{unsupported} in a build without CUDA.
std::unique_ptr<Device> make_gpu(int index);

}  // namespace tutti::trainer
