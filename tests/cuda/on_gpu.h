// What tests of src/cuda share: the first device, or a skipped test.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <span>
#include <thread>
#include <vector>

#include "cuda/check.h"
#include "cuda/device.h"
#include "cuda/many_queues.h"
#include "cuda/memory.h"
#include "cuda/stream.h"

namespace tutti::internal::cuda_test {

class OnGpu : public testing::Test {
 protected:
  void SetUp() override {
    const cuda::Devices found = cuda::find_devices();
    if (found.usable.empty()) GTEST_SKIP() << found.why_none();
    cuda::check(cudaSetDevice(device_));
  }
  static constexpr int device_ = 0;
};

// Memory that streams and the host can touch: `count` bytes that are first, first + 1, ...
class PinnedBytes {
 public:
  explicit PinnedBytes(std::size_t count, int first = 0) {
    void* data = nullptr;
    cuda::check(cudaHostAlloc(&data, count, cudaHostAllocPortable));
    bytes_ = {static_cast<std::byte*>(data), count};
    for (std::byte& each : bytes_) each = static_cast<std::byte>(first++);
  }
  ~PinnedBytes() { cudaFreeHost(bytes_.data()); }
  PinnedBytes(const PinnedBytes&) = delete;
  PinnedBytes& operator=(const PinnedBytes&) = delete;
  std::byte* data() const { return bytes_.data(); }
  std::size_t size() const { return bytes_.size(); }
  bool holds(const PinnedBytes& other) const { return copy() == other.copy(); }
  std::vector<std::byte> copy() const { return {bytes_.begin(), bytes_.end()}; }

 private:
  std::span<std::byte> bytes_;
};

// Long enough for a stream to do what it ought not to.
inline void wait_a_little() { std::this_thread::sleep_for(std::chrono::milliseconds(5)); }

inline void finish(cuda::Stream stream) { cuda::check(cudaStreamSynchronize(stream)); }
inline bool is_idle(cuda::Stream stream) {
  const cudaError_t state = cudaStreamQuery(stream);
  if (state == cudaErrorNotReady) cudaGetLastError();
  return state == cudaSuccess;
}

// Whether it gets idle by and by: for what, if it were wrong, would wait for ever.
inline bool gets_idle(cuda::Stream stream) {
  for (int round = 0; round < 1000 && !is_idle(stream); ++round) wait_a_little();
  return is_idle(stream);
}

}  // namespace tutti::internal::cuda_test
