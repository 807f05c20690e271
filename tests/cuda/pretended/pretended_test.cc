// That the pretended device is as strict as it says: each of these is a mistake that a test on it must show.
#include "cuda/pretended/pretended.h"

#include <cstring>
#include <optional>

#include "cuda/driver.h"
#include "cuda/on_gpu.h"
#include "cuda/reduce.h"
#include "tutti/error.h"

namespace tutti::cuda_test {
namespace {

using cuda::DeviceMemory;
using cuda::Event;
using cuda::OwnStream;
using pretended::Call;
using pretended::Outstanding;

class Strictness : public testing::Test {
 protected:
  void SetUp() override {
    pretended::reset();
    GTEST_FLAG_SET(death_test_style, "threadsafe");
  }
  void TearDown() override { pretended::reset(); }

  // That the device has failed, and stays so.
  static void expect_failed(cudaError_t error) {
    EXPECT_EQ(cudaDeviceSynchronize(), error);
    EXPECT_EQ(cudaGetLastError(), error);
    EXPECT_EQ(cudaGetLastError(), error);
    void* data = nullptr;
    EXPECT_EQ(cudaMalloc(&data, 1), error);
  }
};

// out = middle on one stream, after middle = source on another: if it is said that it is after. Of seed 0 it is, if
// only by luck.
bool second_stream_sees_the_first(bool waits, std::uint64_t seed) {
  pretended::set_delays(seed);
  const PinnedBytes source(1000, 1), out(1000);
  const DeviceMemory middle(0, 1000);
  OwnStream first(0), second(0);
  cuda::copy(middle.data(), source.data(), 1000, first.get());
  Event copied(0);
  copied.record(first.get());
  if (waits) copied.hold(second.get());
  if (seed == 0) wait_a_little();
  cuda::copy(out.data(), middle.data(), 1000, second.get());
  finish(second.get());
  const bool seen = out.holds(source);
  finish(first.get());
  return seen;
}

TEST_F(Strictness, WaitingForAnotherStreamShowsItsData) {
  for (std::uint64_t seed = 1; seed <= 50; ++seed) EXPECT_TRUE(second_stream_sees_the_first(true, seed)) << seed;
}

#ifdef __SANITIZE_THREAD__
TEST_F(Strictness, NotWaitingForAnotherStreamIsARace) {
  EXPECT_EXIT(
      {
        second_stream_sees_the_first(false, 0);
        std::exit(0);
      },
      testing::ExitedWithCode(66), "data race");
}
#else
TEST_F(Strictness, NotWaitingForAnotherStreamShowsWrongDataBeforeLong) {
  int wrong = 0;
  for (std::uint64_t seed = 1; seed <= 50; ++seed) wrong += second_stream_sees_the_first(false, seed) ? 0 : 1;
  EXPECT_GT(wrong, 5);
}
#endif

TEST_F(Strictness, FreshMemoryIsGarbage) {
  const DeviceMemory memory(0, 64);
  std::vector<std::byte> bytes(64);
  ASSERT_EQ(cudaMemcpy(bytes.data(), memory.data(), 64, cudaMemcpyDeviceToHost), cudaSuccess);
  EXPECT_NE(bytes[0], std::byte{0});
  EXPECT_NE(bytes[63], std::byte{0});
}

TEST_F(Strictness, TheHostCannotTouchDeviceMemory) {
  const DeviceMemory memory(0, 64);
  EXPECT_DEATH(std::memset(memory.data(), 1, 1), "");
  EXPECT_DEATH(
      {
        if (*const_cast<const volatile std::byte*>(memory.data()) == std::byte{}) std::exit(1);
        std::exit(0);
      },
      "");
}

TEST_F(Strictness, MemoryThatWasFreedIsNotCopied) {
  const PinnedBytes out(64);
  OwnStream stream(0);
  const std::byte* freed = DeviceMemory(0, 64).data();
  EXPECT_THROW(cuda::copy(out.data(), freed, 64, stream.get()), Error);
  expect_failed(cudaErrorIllegalAddress);
}

TEST_F(Strictness, WhatIsUnpinnedTooEarlyIsNotCopied) {
  std::byte* const pages = static_cast<std::byte*>(std::aligned_alloc(4096, 4096));
  const DeviceMemory memory(0, 64);
  OwnStream stream(0);
  cuda::Gate gate(0);
  {
    const cuda::Pinned pinned(pages, 4096);
    gate.hold(stream.get(), 1);
    cuda::copy(memory.data(), pages, 64, stream.get());
  }
  gate.open(1);
  expect_failed(cudaErrorIllegalAddress);
  std::free(pages);
}

TEST_F(Strictness, AByteTooManyIsNotCopied) {
  const PinnedBytes out(128);
  OwnStream stream(0);
  const DeviceMemory memory(0, 64), next(0, 64);
  EXPECT_THROW(cuda::copy(out.data(), memory.data(), 65, stream.get()), Error);
  expect_failed(cudaErrorIllegalAddress);
}

TEST_F(Strictness, AsynchronousCopiesOfPageableMemoryAreRefused) {
  const DeviceMemory memory(0, 64);
  std::vector<std::byte> pageable(64);
  OwnStream stream(0);
  EXPECT_EQ(cudaMemcpy(memory.data(), pageable.data(), 64, cudaMemcpyDefault), cudaSuccess);
  EXPECT_THROW(cuda::copy(memory.data(), pageable.data(), 64, stream.get()), Error);
  expect_failed(cudaErrorIllegalAddress);
}

// As the stream gets there: the call does not know what the threads will touch.
cudaError_t reduced(const std::byte* source, std::byte* target, std::size_t count) {
  OwnStream stream(0);
  const ReduceSource sources[] = {{source}, {source, 1}};
  const ReduceTarget to{target};
  cuda::reduce({}, sources, {&to, 1}, count, stream.get());
  return cudaStreamSynchronize(stream.get());
}

TEST_F(Strictness, KernelsTouchWhatTheirDeviceReaches) {
  const PinnedBytes source(256);
  const DeviceMemory target(0, 256);
  EXPECT_EQ(reduced(source.data(), target.data(), 64), cudaSuccess);
  EXPECT_EQ(reduced(source.data(), target.data() + 4, 63), cudaSuccess);
  EXPECT_EQ(reduced(source.data(), target.data() + 4, 64), cudaErrorIllegalAddress);
  expect_failed(cudaErrorIllegalAddress);
}
TEST_F(Strictness, KernelsTouchNoPageableMemory) {
  std::vector<std::byte> pageable(256);
  const DeviceMemory target(0, 256);
  EXPECT_EQ(reduced(pageable.data(), target.data(), 64), cudaErrorIllegalAddress);
}
TEST_F(Strictness, KernelsTouchNoOtherDevicesMemory) {
  pretended::set_devices(2);
  const PinnedBytes source(256);
  const DeviceMemory target(1, 256);
  EXPECT_EQ(reduced(source.data(), target.data(), 64), cudaErrorIllegalAddress);
  EXPECT_EQ(cudaSetDevice(1), cudaSuccess);
  EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess) << "the other device has not failed";
}

TEST_F(Strictness, TheCurrentDeviceMustBeTheStreams) {
  pretended::set_devices(2);
  OwnStream other(1);
  Event event(0);
  EXPECT_THROW(event.record(other.get()), Error);
  EXPECT_EQ(cudaGetLastError(), cudaErrorInvalidResourceHandle);
  const DeviceMemory memory(1, 256);
  const ReduceSource sources[] = {{memory.data()}, {memory.data(), 1}};
  const ReduceTarget target{memory.data()};
  EXPECT_THROW(cuda::reduce({}, sources, {&target, 1}, 4, other.get()), Error);
  const cuda::OnDevice there(1);
  EXPECT_NO_THROW(cuda::reduce({}, sources, {&target, 1}, 4, other.get()));
}

TEST_F(Strictness, WhatIsLeftIsCounted) {
  EXPECT_EQ(pretended::outstanding(), (Outstanding{}));
  {
    const DeviceMemory memory(0, 64);
    const PinnedBytes bytes(64);
    OwnStream stream(0);
    Event event(0);
    cuda::Gate gate(0);
    EXPECT_EQ(pretended::outstanding(), (Outstanding{3, 0, 1, 1}));
  }
  EXPECT_EQ(pretended::outstanding(), (Outstanding{}));
}

TEST_F(Strictness, WhatIsToFailFails) {
  pretended::fail(Call::allocation, 2, cudaErrorMemoryAllocation);
  const DeviceMemory first(0, 64);
  EXPECT_THROW(DeviceMemory(0, 64), Error);
  EXPECT_EQ(cudaGetLastError(), cudaErrorMemoryAllocation);
  const DeviceMemory third(0, 64);
  EXPECT_EQ(pretended::calls(Call::allocation), 3u);

  OwnStream stream(0);
  pretended::fail(Call::copy, 1, cudaErrorInvalidValue);
  EXPECT_THROW(cuda::copy(first.data(), third.data(), 64, stream.get()), Error);
  pretended::fail(Call::copy, 1, cudaErrorLaunchFailure);
  EXPECT_NO_THROW(cuda::copy(first.data(), third.data(), 64, stream.get()));
  expect_failed(cudaErrorLaunchFailure);
}

TEST_F(Strictness, StreamsOfADeviceThatFailedComeToTheirEnd) {
  OwnStream held(0), other(0);
  cuda::Gate gate(0);
  Event event(0);
  gate.hold(held.get(), 1);
  event.record(held.get());
  const DeviceMemory memory(0, 64);
  pretended::fail(Call::copy, 1, cudaErrorIllegalAddress);
  cuda::copy(memory.data(), memory.data(), 64, other.get());
  EXPECT_EQ(cudaStreamSynchronize(other.get()), cudaErrorIllegalAddress);
  EXPECT_THROW(event.is_done(), Error);
  expect_failed(cudaErrorIllegalAddress);
}

TEST_F(Strictness, WithoutADriverOrADeviceThatIsSaid) {
  pretended::set_devices(pretended::kNoDriver);
  EXPECT_FALSE(cuda::is_possible());
  EXPECT_NE(cuda::find_devices().why_none().find("no NVIDIA driver is installed"), std::string::npos);
  pretended::set_devices(0);
  EXPECT_TRUE(cuda::is_possible());
  EXPECT_NE(cuda::find_devices().why_none().find("the driver shows no GPU"), std::string::npos);
}

TEST_F(Strictness, LookingWhereAPointerPointsStartsNothing) {
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
TEST_F(Strictness, TheDefaultStreamIsOrderedAmongBlockingOnes) {
  const PinnedBytes source(64, 1), out(64);
  const DeviceMemory middle(0, 64);
  cudaStream_t first = nullptr, second = nullptr;
  ASSERT_EQ(cudaStreamCreate(&first), cudaSuccess);
  ASSERT_EQ(cudaStreamCreate(&second), cudaSuccess);
  pretended::set_delays(5);
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

TEST_F(Strictness, GatesCompareAroundTheCircle) {
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

TEST_F(Strictness, HostFunctionsComeInTheirTurnAndMayNotCallCuda) {
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

TEST_F(Strictness, EventsTellTheTimeBetweenThem) {
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

TEST_F(Strictness, NothingIsRunWhileItIsCaptured) {
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
}  // namespace tutti::cuda_test
