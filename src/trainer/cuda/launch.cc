#include "trainer/cuda/launch.h"

#include <cuda_runtime_api.h>

#include <algorithm>

#include "cuda/check.h"

namespace tutti::trainer {

// A thread an element, until there are more than any GPU runs at once; how many there are changes no result.
void launch(const Task& task, internal::cuda::Stream stream) {
  constexpr std::size_t kThreads = 128, kMaxBlocks = 4096;
  const std::size_t blocks = std::min((task.count + kThreads - 1) / kThreads, kMaxBlocks);
  Task parameter = task;
  void* parameters[] = {&parameter};
  internal::cuda::check(
      cudaLaunchKernel(task_kernel(), dim3(static_cast<unsigned>(blocks)), dim3(kThreads), parameters, 0, stream));
}

}  // namespace tutti::trainer
