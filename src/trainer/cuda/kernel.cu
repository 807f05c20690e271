// The one kernel: run_task() by the threads of a GPU. The step is the same for all threads, so the switch costs a few
// instructions; kernels of their own would take longer to compile and launch no faster.
#include "trainer/cuda/launch.h"
#include "trainer/run_task.h"

namespace tutti::trainer {
namespace {

struct GpuThread {
  __device__ std::size_t index() const { return blockIdx.x * std::size_t{blockDim.x} + threadIdx.x; }
  __device__ std::size_t threads() const { return gridDim.x * std::size_t{blockDim.x}; }
  __device__ double load(const double* from) const { return *from; }
  __device__ void store(double* to, double value) const { *to = value; }
};

__global__ void run_on_gpu(const __grid_constant__ Task task) { run_task(task, GpuThread()); }

}  // namespace

const void* task_kernel() { return reinterpret_cast<const void*>(run_on_gpu); }

}  // namespace tutti::trainer
