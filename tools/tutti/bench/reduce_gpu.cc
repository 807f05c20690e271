// A GPU's kernels beside copies from its memory to its memory, by the GPU's clock. Needs nothing of CUDA's to compile:
// without it there is no device to be given.
#include <algorithm>
#include <cstring>
#include <thread>

#include "bench/memory.h"
#include "bench/reduce.h"
#include "bench/values.h"
#include "cuda/memory.h"
#include "cuda/reduce.h"
#include "cuda/stopwatch.h"
#include "cuda/stream.h"

namespace tutti::internal::tools {
namespace {

class OnGpu final : public ReduceSubject {
 public:
  OnGpu(const BenchOptions& options, int device, std::size_t max_count)
      : element_(size_of(options.dtype)),
        memory_(options, max_count),
        here_(device),
        stage_(device, kPeriod * 8),
        own_(device, memory_.bytes),
        stream_(device),
        arrived_(device),
        stopwatch_(device),
        call_(options, memory_, own_.data()) {
    for (std::size_t i = 0; i < memory_.sources; ++i) {
      write_input(stage_.data(), 0, std::min(max_count, kPeriod), options.dtype, static_cast<int>(i));
      fill(own_.data() + i * memory_.stride_bytes, max_count);
    }
  }

  double reduce_us(std::size_t count, std::size_t calls) override {
    return time(calls, [&] { cuda::reduce(call_.spec, call_.sources, {&call_.target, 1}, count, stream_.get()); });
  }
  double copy_us(std::size_t bytes, std::size_t calls) override {
    return time(calls, [&] { cuda::copy(own_.data() + memory_.copies(), own_.data(), bytes, stream_.get()); });
  }
  void spoil(std::size_t count) override {
    std::memset(stage_.data(), 0xa5, stage_.bytes());
    fill(call_.target.data, count);
  }
  void read(std::byte* to, std::size_t first, std::size_t count) override {
    cuda::copy(stage_.data(), call_.target.data + first * element_, count * element_, stream_.get());
    wait();
    std::memcpy(to, stage_.data(), count * element_);
  }

 private:
  // Elements [0, count), which repeat what is on the stage after a period.
  void fill(std::byte* to, std::size_t count) {
    for (std::size_t first = 0; first < count; first += kPeriod)
      cuda::copy(to + first * element_, stage_.data(), std::min(kPeriod, count - first) * element_, stream_.get());
    wait();
  }
  void wait() {
    arrived_.record(stream_.get());
    while (!arrived_.is_done()) std::this_thread::yield();
  }
  template <class Call>
  double time(std::size_t calls, const Call& call) {
    call();
    stopwatch_.start(stream_.get());
    for (std::size_t i = 0; i < calls; ++i) call();
    stopwatch_.stop(stream_.get());
    return stopwatch_.us() / static_cast<double>(calls);
  }

  std::size_t element_;
  ReduceMemory memory_;
  cuda::OnDevice here_;
  cuda::PinnedMemory stage_;  // a whole period of any type, by way of which everything goes
  cuda::DeviceMemory own_;
  cuda::OwnStream stream_;
  cuda::Event arrived_;
  cuda::Stopwatch stopwatch_;
  ReduceCall call_;
};

}  // namespace

std::unique_ptr<ReduceSubject> gpu_subject(const BenchOptions& options, const cuda::Device& gpu,
                                           std::size_t max_count) {
  return std::make_unique<OnGpu>(options, gpu.index, max_count);
}

}  // namespace tutti::internal::tools
