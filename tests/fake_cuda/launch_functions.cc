// Of CUDA's runtime library: kernels.
#include <fmt/format.h>

#include <memory>
#include <numeric>

#include "fake_cuda/kernel.h"
#include "fake_cuda/process.h"

using namespace tutti::internal::fake;

namespace {

constexpr std::size_t kMaxThreadsOfBlock = 1024, kMaxSharedBytes = 48 << 10, kMaxBlocks = 0x7fffffff;

// What a kernel of a device may touch, and where it is. Most of what it touches is where it touched before.
class Reachable final : public tutti::internal::cuda_test::Memory {
 public:
  explicit Reachable(int device) : device_(device) {}
  const std::byte* load(const std::byte* from, std::size_t bytes) override { return find(from, bytes); }
  std::byte* store(std::byte* to, std::size_t bytes) override { return find(to, bytes); }

 private:
  std::byte* find(const std::byte* at, std::size_t bytes) {
    if (reinterpret_cast<std::uintptr_t>(at) % bytes != 0)
      throw Fault{cudaErrorMisalignedAddress,
                  fmt::format("a kernel touches {} bytes at {}, which is no multiple of that", bytes, fmt::ptr(at))};
    for (const Region* const each : touched_) {
      if (each->holds(at, bytes)) return each->alias + (at - each->data);
    }
    const Region* found = nullptr;
    std::byte* const alias = process().regions.alias_of(at, bytes, {device_, false}, &found);
    touched_.push_back(found);
    return alias;
  }

  int device_;
  std::vector<const Region*> touched_;
};

// In an order that is not theirs: first those of every seventh number, or near it, then the next.
std::vector<std::size_t> threads_of(std::size_t count) {
  std::size_t step = 7;
  while (std::gcd(step, count) != 1) ++step;
  std::vector<std::size_t> threads(count);
  for (std::size_t i = 0; i < count; ++i) threads[i] = (i + 1) * step % count;
  return threads;
}

std::size_t volume(const dim3& size) { return std::size_t{size.x} * size.y * size.z; }

}  // namespace

cudaError_t cudaLaunchKernel(const void* function, dim3 grid, dim3 block, void** parameters, std::size_t shared_bytes,
                             cudaStream_t handle) {
  return call([&] {
    Stream* const stream = stream_of(handle);
    if (stream == nullptr || &stream->device != &current_device()) return cudaErrorInvalidResourceHandle;
    const auto* const kernel = static_cast<const Kernel*>(function);
    if (kernel == nullptr || kernel->mark != Kernel::kMark) return cudaErrorInvalidDeviceFunction;
    const std::size_t blocks = volume(grid), threads = volume(block);
    if (blocks == 0 || blocks > kMaxBlocks || threads == 0 || threads > kMaxThreadsOfBlock)
      return cudaErrorInvalidConfiguration;
    if (shared_bytes > kMaxSharedBytes) return cudaErrorInvalidValue;
    const auto* const first = static_cast<const std::byte*>(parameters[0]);
    return enqueue(
        Call::launch, *stream,
        [=, device = stream->device.index, parameter = std::vector<std::byte>(first, first + kernel->parameter_bytes)] {
          Reachable memory(device);
          kernel->run(parameter.data(), {threads_of(blocks * threads), shared_bytes / threads}, memory);
        });
  });
}
