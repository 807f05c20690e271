// A task as a kernel on a stream.
#pragma once

#include "cuda/stream.h"
#include "trainer/task.h"

namespace tutti::trainer {

// Returns at once; the stream is the current device's, task.count not 0. Throws Error{system} where CUDA refuses.
void launch(const Task& task, internal::cuda::Stream stream);

// The compiled kernel, as cudaLaunchKernel() takes it. Its one parameter is a Task.
const void* task_kernel();

}  // namespace tutti::trainer
