// What the fake device does as CUDA does it, or as a test tells it to.
#include <cstring>
#include <optional>

#include "cuda/driver.h"
#include "cuda/on_gpu.h"
#include "fake_cuda/fresh_device.h"
#include "tutti/error.h"

namespace tutti::internal::cuda_test {
namespace {

using cuda::DeviceMemory;
using cuda::Event;
using cuda::OwnStream;
using fake::Call;
using fake::Outstanding;

class Device : public FreshDevice {};

TEST_F(Device, WhatIsLeftIsCounted) {
  EXPECT_EQ(fake::outstanding(), (Outstanding{}));
  {
    const DeviceMemory memory(0, 64);
    const PinnedBytes bytes(64);
    OwnStream stream(0);
    Event event(0);
    cuda::Semaphore gate(0);
    EXPECT_EQ(fake::outstanding(), (Outstanding{3, 0, 1, 1}));
  }
  EXPECT_EQ(fake::outstanding(), (Outstanding{}));
}

TEST_F(Device, WhatIsToFailFails) {
  fake::fail(Call::allocation, 2, cudaErrorMemoryAllocation);
  const DeviceMemory first(0, 64);
  EXPECT_THROW(DeviceMemory(0, 64), Error);
  EXPECT_EQ(cudaGetLastError(), cudaSuccess) << "the Error has said it";
  const DeviceMemory third(0, 64);
  EXPECT_EQ(fake::calls(Call::allocation), 3u);

  OwnStream stream(0);
  fake::fail(Call::copy, 1, cudaErrorInvalidValue);
  EXPECT_THROW(cuda::copy(first.data(), third.data(), 64, stream.get()), Error);
  fake::fail(Call::copy, 1, cudaErrorLaunchFailure);
  EXPECT_NO_THROW(cuda::copy(first.data(), third.data(), 64, stream.get()));
  expect_failed(cudaErrorLaunchFailure);
}

TEST_F(Device, StreamsOfADeviceThatFailedComeToTheirEnd) {
  OwnStream held(0), other(0);
  cuda::Semaphore gate(0);
  Event event(0);
  gate.hold(held.get(), 1);
  event.record(held.get());
  const DeviceMemory memory(0, 64);
  fake::fail(Call::copy, 1, cudaErrorIllegalAddress);
  cuda::copy(memory.data(), memory.data(), 64, other.get());
  EXPECT_EQ(cudaStreamSynchronize(other.get()), cudaErrorIllegalAddress);
  EXPECT_THROW(event.is_done(), Error);
  expect_failed(cudaErrorIllegalAddress);
}

TEST_F(Device, WithoutADriverOrADeviceThatIsSaid) {
  fake::set_devices(fake::kNoDriver);
  EXPECT_FALSE(cuda::is_possible());
  EXPECT_NE(cuda::find_devices().why_none().find("no NVIDIA driver is installed"), std::string::npos);
  fake::set_devices(0);
  EXPECT_TRUE(cuda::is_possible());
  EXPECT_NE(cuda::find_devices().why_none().find("the driver shows no GPU"), std::string::npos);
}

TEST_F(Device, LookingWhereAPointerPointsStartsNothing) {
  int local = 0;
  EXPECT_EQ(cuda::location_of(&local), cuda::Location{});
  CUpointer_attribute wanted = CU_POINTER_ATTRIBUTE_IS_MANAGED;
  unsigned managed = 0;
  void* value = &managed;
  const auto pointer = reinterpret_cast<CUdeviceptr>(&local);
  EXPECT_EQ(cuda::driver()->pointer_get_attributes(1, &wanted, &value, pointer), CUDA_ERROR_NOT_INITIALIZED);
  const DeviceMemory memory(0, 1);
  EXPECT_EQ(cuda::driver()->pointer_get_attributes(1, &wanted, &value, pointer), CUDA_SUCCESS);
  EXPECT_EQ(cuda::location_of(memory.data()).kind, MemoryKind::device);
}

// Blocking streams and the default stream wait for each other.
TEST_F(Device, TheDefaultStreamIsOrderedAmongBlockingOnes) {
  const PinnedBytes source(64, 1), out(64);
  const DeviceMemory middle(0, 64);
  cudaStream_t first = nullptr, second = nullptr;
  ASSERT_EQ(cudaStreamCreate(&first), cudaSuccess);
  ASSERT_EQ(cudaStreamCreate(&second), cudaSuccess);
  fake::set_delays(5);
  for (int round = 0; round < 20; ++round) {
    std::memset(out.data(), 0, 64);
    ASSERT_EQ(cudaMemsetAsync(middle.data(), 0, 64, first), cudaSuccess);
    cuda::copy(middle.data(), source.data(), 64, nullptr);
    cuda::copy(out.data(), middle.data(), 64, second);
    finish(second);
    EXPECT_TRUE(out.holds(source));
  }
  cudaStreamDestroy(first);
  cudaStreamDestroy(second);
}

TEST_F(Device, GatesCompareAroundTheCircle) {
  const PinnedBytes word(4);
  OwnStream stream(0);
  const auto address = reinterpret_cast<CUdeviceptr>(word.data());
  const std::uint32_t value = 1;
  std::memcpy(word.data(), &value, 4);
  EXPECT_EQ(cuda::driver()->stream_wait_value(stream.get(), address, 0xffffffff, CU_STREAM_WAIT_VALUE_GEQ),
            CUDA_SUCCESS);
  finish(stream.get());
  std::uint32_t pageable = 1;
  EXPECT_EQ(cuda::driver()->stream_wait_value(stream.get(), reinterpret_cast<CUdeviceptr>(&pageable), 0,
                                              CU_STREAM_WAIT_VALUE_GEQ),
            CUDA_ERROR_INVALID_VALUE);
}

TEST_F(Device, HostFunctionsComeInTheirTurnAndMayNotCallCuda) {
  OwnStream stream(0);
  std::optional<cudaError_t> answer;
  const auto function = [](void* to) {
    int device = 0;
    *static_cast<std::optional<cudaError_t>*>(to) = cudaGetDevice(&device);
  };
  ASSERT_EQ(cudaLaunchHostFunc(stream.get(), function, &answer), cudaSuccess);
  finish(stream.get());
  EXPECT_EQ(answer, cudaErrorNotPermitted);
}

TEST_F(Device, EventsTellTheTimeBetweenThem) {
  cudaEvent_t start = nullptr, end = nullptr;
  ASSERT_EQ(cudaEventCreate(&start), cudaSuccess);
  ASSERT_EQ(cudaEventCreate(&end), cudaSuccess);
  OwnStream stream(0);
  ASSERT_EQ(cudaEventRecord(start, stream.get()), cudaSuccess);
  ASSERT_EQ(cudaLaunchHostFunc(
                stream.get(), [](void*) { wait_a_little(); }, nullptr),
            cudaSuccess);
  ASSERT_EQ(cudaEventRecord(end, stream.get()), cudaSuccess);
  ASSERT_EQ(cudaEventSynchronize(end), cudaSuccess);
  float ms = 0;
  ASSERT_EQ(cudaEventElapsedTime(&ms, start, end), cudaSuccess);
  EXPECT_GE(ms, 5);
  cudaEventDestroy(start);
  cudaEventDestroy(end);
}

TEST_F(Device, NothingIsRunWhileItIsCaptured) {
  const PinnedBytes source(64, 1), out(64);
  OwnStream stream(0);
  ASSERT_EQ(cudaStreamBeginCapture(stream.get(), cudaStreamCaptureModeGlobal), cudaSuccess);
  cuda::copy(out.data(), source.data(), 64, stream.get());
  EXPECT_EQ(cudaStreamSynchronize(stream.get()), cudaErrorStreamCaptureUnsupported);
  cudaGraph_t graph = nullptr;
  ASSERT_EQ(cudaStreamEndCapture(stream.get(), &graph), cudaSuccess);
  finish(stream.get());
  EXPECT_FALSE(out.holds(source));
}

}  // namespace
}  // namespace tutti::internal::cuda_test
