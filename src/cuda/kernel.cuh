// The kernels: run_group() and run_groups() of thread.h by the threads of a GPU.
#pragma once

#include "cuda/kernels.h"
#include "cuda/thread.h"

namespace tutti::internal::cuda {

template <int kBytes>
using WordOf =
    std::conditional_t<kBytes == 1, std::uint8_t, std::conditional_t<kBytes == 2, std::uint16_t, std::uint32_t>>;

// A thread of the GPU, as thread.h wants it.
struct DeviceLane {
  __device__ __forceinline__ std::size_t index() const { return blockIdx.x * std::size_t{blockDim.x} + threadIdx.x; }
  __device__ __forceinline__ std::size_t threads() const { return gridDim.x * std::size_t{blockDim.x}; }

  template <int kBytes>
  __device__ __forceinline__ Cell load(const std::byte* from) const {
    if constexpr (kBytes == 16) {
      // One instruction, also where the compiler sees that other branches load a part of it.
      Cell cell;
      asm("ld.global.v4.u32 {%0, %1, %2, %3}, [%4];"
          : "=r"(cell.word[0]), "=r"(cell.word[1]), "=r"(cell.word[2]), "=r"(cell.word[3])
          : "l"(__cvta_generic_to_global(from)));
      return cell;
    } else if constexpr (kBytes == 8) {
      const uint2 words = *reinterpret_cast<const uint2*>(from);
      return {{words.x, words.y}};
    } else {
      return {{*reinterpret_cast<const WordOf<kBytes>*>(from)}};
    }
  }

  template <int kBytes>
  __device__ __forceinline__ void store(std::byte* to, const Cell& cell) const {
    if constexpr (kBytes == 16) {
      *reinterpret_cast<uint4*>(to) = make_uint4(cell.word[0], cell.word[1], cell.word[2], cell.word[3]);
    } else if constexpr (kBytes == 8) {
      *reinterpret_cast<uint2*>(to) = make_uint2(cell.word[0], cell.word[1]);
    } else {
      *reinterpret_cast<WordOf<kBytes>*>(to) = static_cast<WordOf<kBytes>>(cell.word[0]);
    }
  }

  // Cells of one number lie side by side, so the threads of a warp meet no bank twice.
  __device__ __forceinline__ Cell& waiting(int i) const {
    extern __shared__ Cell cells[];
    return cells[i * blockDim.x + threadIdx.x];
  }
};

// Bytes in flight are what bandwidth is made of. A thread has one cell of each source on its way. Of one source that is
// 16 to 32 KiB for each multiprocessor, by how many registers a thread takes; the latency of an H100's memory asks for
// about 32.
template <class F>
__global__ void __launch_bounds__(kMaxThreads) pair_kernel(const __grid_constant__ FewTask task) {
  run_group<F, 2>(task, DeviceLane());
}
template <class F>
__global__ void __launch_bounds__(kMaxThreads) group_kernel(const __grid_constant__ FewTask task) {
  run_group<F, kBatch>(task, DeviceLane());
}
template <class F>
__global__ void __launch_bounds__(kMaxThreads) tree_kernel(const __grid_constant__ ManyTask task) {
  run_groups<F>(task, DeviceLane());
}

// For with_floating_form() and with_integer_form().
struct KernelOf {
  Shape shape;
  template <class F>
  const void* operator()() const {
    switch (shape) {
      case Shape::pair: return reinterpret_cast<const void*>(pair_kernel<F>);
      case Shape::group: return reinterpret_cast<const void*>(group_kernel<F>);
      default: return reinterpret_cast<const void*>(tree_kernel<F>);
    }
  }
};

}  // namespace tutti::internal::cuda
