#include "cuda/reduce.h"

#include <cuda_runtime_api.h>

#include <algorithm>

#include "cuda/cell.h"
#include "cuda/check.h"
#include "cuda/kernels.h"
#include "types/kinds.h"

namespace tutti::internal::cuda {
namespace {

const void* kernel_of(const KernelName& name) {
  if (combines_bits(name.op)) return bits_kernel(name);
  switch (name.dtype) {
    case DType::float32: return float32_kernel(name);
    case DType::float64: return float64_kernel(name);
    case DType::float16: return float16_kernel(name);
    case DType::bfloat16: return bfloat16_kernel(name);
    case DType::float8_e4m3: return float8_e4m3_kernel(name);
    case DType::float8_e5m2: return float8_e5m2_kernel(name);
    case DType::int8:
    case DType::uint8: return int8_kernel(name);
    case DType::int32:
    case DType::uint32: return int32_kernel(name);
    default: return int64_kernel(name);
  }
}

// A thread for each item: where threads do several of them, a call takes 1 to 5 % longer
// (bench/results/2026-11-27-gpu.md). But a block of a tree may have as few as eight threads.
unsigned blocks_for(std::size_t items, std::size_t threads, Shape shape) {
  const std::size_t most = shape == Shape::tree ? 16 << 10 : 0x7fffffff;
  return static_cast<unsigned>(std::min((items + threads - 1) / threads, most));
}

template <class Task>
void launch(const Plan& plan, Stream stream) {
  Task task = plan.task<Task>();
  const KernelName name = plan.kernel();
  // What every device gives a block without being asked.
  constexpr std::size_t kSharedBytes = 48 << 10;
  const std::size_t waiting_bytes = plan.waiting_cells() * sizeof(Cell);
  std::size_t threads = kMaxThreads;
  while (threads * waiting_bytes > kSharedBytes) threads /= 2;
  void* parameters[] = {&task};
  check(cudaLaunchKernel(kernel_of(name), dim3(blocks_for(task.items, threads, name.shape)),
                         dim3(static_cast<unsigned>(threads)), parameters, threads * waiting_bytes, stream));
}

}  // namespace

void reduce(const ReduceSpec& spec, std::span<const ReduceSource> sources, std::span<const ReduceTarget> targets,
            std::size_t count, Stream stream) {
  for (const Call& call : calls_of(spec, sources, targets, count)) {
    const Plan plan(call);
    plan.kernel().shape == Shape::tree ? launch<ManyTask>(plan, stream) : launch<FewTask>(plan, stream);
  }
}

}  // namespace tutti::internal::cuda
