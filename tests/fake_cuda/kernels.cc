// The kernels of src/cuda: the code of their threads (cuda/thread.h) by the CPU.
#include "cuda/kernels.h"

#include <array>
#include <cassert>

#include "fake_cuda/kernel.h"

namespace tutti::internal::cuda {
namespace {

using fake::Grid;
using fake::Kernel;

void run(const KernelName& name, const void* parameter, const Grid& grid, cuda_test::Memory& memory) {
  cuda_test::Launch launch{name, nullptr, nullptr, grid.threads, grid.shared_bytes_each / sizeof(Cell), &memory};
  if (name.shape == Shape::tree) {
    launch.many = static_cast<const ManyTask*>(parameter);
  } else {
    launch.few = static_cast<const FewTask*>(parameter);
  }
  switch (name.dtype) {
    case DType::float32:
    case DType::float64: return run_floats(launch);
    case DType::float16:
    case DType::bfloat16: return run_halves(launch);
    case DType::float8_e4m3:
    case DType::float8_e5m2: return run_float8s(launch);
    default: return run_integers(launch);
  }
}

// By dtype, op, mixed, shape. Never destroyed: streams may go on until the process has ended.
constexpr std::size_t kDTypes = 13, kOps = 8, kShapes = 3;
using Table = std::array<Kernel, kDTypes * kOps * 2 * kShapes>;

std::size_t place_of(const KernelName& name) {
  const std::size_t named = static_cast<std::size_t>(name.dtype) * kOps + static_cast<std::size_t>(name.op);
  return (named * 2 + (name.mixed ? 1 : 0)) * kShapes + static_cast<std::size_t>(name.shape);
}

const Table& table() {
  static const Table& the = *[] {
    assert(all_dtypes().size() == kDTypes && all_ops().size() == kOps);
    auto* const made = new Table;
    for (const DType dtype : all_dtypes()) {
      for (const Op op : all_ops()) {
        for (const bool mixed : {false, true}) {
          for (const Shape shape : {Shape::pair, Shape::group, Shape::tree}) {
            const KernelName name{dtype, op, mixed, shape};
            Kernel& kernel = (*made)[place_of(name)];
            kernel.parameter_bytes = shape == Shape::tree ? sizeof(ManyTask) : sizeof(FewTask);
            kernel.run = [name](const void* parameter, const Grid& grid, cuda_test::Memory& memory) {
              run(name, parameter, grid, memory);
            };
          }
        }
      }
    }
    return made;
  }();
  return the;
}

// nullptr, which no launch takes, for a type that is not of the family.
const void* kernel(const KernelName& name, DType first, DType second) {
  return name.dtype == first || name.dtype == second ? &table()[place_of(name)] : nullptr;
}

}  // namespace

const void* float32_kernel(const KernelName& name) { return kernel(name, DType::float32, DType::float32); }
const void* float64_kernel(const KernelName& name) { return kernel(name, DType::float64, DType::float64); }
const void* float16_kernel(const KernelName& name) { return kernel(name, DType::float16, DType::float16); }
const void* bfloat16_kernel(const KernelName& name) { return kernel(name, DType::bfloat16, DType::bfloat16); }
const void* float8_e4m3_kernel(const KernelName& name) { return kernel(name, DType::float8_e4m3, DType::float8_e4m3); }
const void* float8_e5m2_kernel(const KernelName& name) { return kernel(name, DType::float8_e5m2, DType::float8_e5m2); }
const void* int8_kernel(const KernelName& name) { return kernel(name, DType::int8, DType::uint8); }
const void* int32_kernel(const KernelName& name) { return kernel(name, DType::int32, DType::uint32); }
const void* int64_kernel(const KernelName& name) { return kernel(name, DType::int64, DType::uint64); }
const void* bits_kernel(const KernelName& name) { return kernel(name, DType::uint8, DType::boolean); }

}  // namespace tutti::internal::cuda
