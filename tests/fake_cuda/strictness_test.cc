// That the fake device is as strict as it says: each of these is a mistake that a test on it must show.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <thread>

#include "cuda/on_gpu.h"
#include "cuda/reduce.h"
#include "fake_cuda/fresh_device.h"
#include "tutti/error.h"

namespace tutti::internal::cuda_test {
namespace {

using cuda::DeviceMemory;
using cuda::Event;
using cuda::OwnStream;

class Strictness : public FreshDevice {};

// out = middle on one stream, after middle = source on another: if it is said that it is after. Of seed 0 it is, if
// only by luck.
bool second_stream_sees_the_first(bool waits, std::uint64_t seed) {
  fake::set_delays(seed);
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

// Waits until condition() is true, for up to 20 s. Returns whether it is.
template <class Condition>
bool comes_true(Condition condition) {
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (!condition()) {
    if (std::chrono::steady_clock::now() > until) return false;
    std::this_thread::yield();
  }
  return true;
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
  // How many of the delays show it depends on who gets a processor when, so the first is waited for.
  std::uint64_t seed = 1;
  while (seed <= 1000 && second_stream_sees_the_first(false, seed)) ++seed;
  EXPECT_LE(seed, 1000U);
}
#endif

TEST_F(Strictness, StreamsOfOneQueueWaitForEachOther) {
  fake::set_one_queue();
  OwnStream held(0), other(0);
  cuda::Semaphore gate(0);
  gate.hold(held.get(), 1);
  const PinnedBytes source(64, 1);
  const cuda::DeviceMemory out(0, 64);
  cuda::copy(out.data(), source.data(), 64, other.get());
  wait_a_little();
  EXPECT_FALSE(is_idle(other.get()));
  gate.signal(1);
  finish(other.get());
}

TEST_F(Strictness, BetweenHostMemoryACopyIsDoneWhenItReturns) {
  OwnStream stream(0);
  const PinnedBytes source(1000, 1), out(1000);
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    fake::set_delays(seed);
    std::fill_n(out.data(), 1000, std::byte{0});
    cuda::copy(out.data(), source.data(), 1000, stream.get());
    EXPECT_TRUE(out.holds(source));
  }
}

TEST_F(Strictness, ADriverWithOneLockLetsNobodyInWhileMemoryIsFreed) {
  fake::set_one_lock();
  OwnStream held(0);
  cuda::Semaphore gate(0);
  std::optional<DeviceMemory> memory(std::in_place, 0, 64);
  gate.hold(held.get(), 1);
  std::thread frees([&] { memory.reset(); });
  // Nobody else is in the driver: whoever has its lock frees, and keeps it until the gate opens.
  EXPECT_TRUE(comes_true([] { return fake::is_driver_locked(); }));
  std::atomic<bool> begins{false}, opens{false};
  bool was_let_in_early = true;
  std::thread asks([&] {
    begins = true;
    is_idle(held.get());
    was_let_in_early = !opens;
  });
  EXPECT_TRUE(comes_true([&] { return begins.load(); }));
  std::this_thread::sleep_for(std::chrono::milliseconds(50));  // for `asks` to get in, if it could
  opens = true;
  gate.signal(1);
  frees.join();
  asks.join();
  EXPECT_FALSE(was_let_in_early);
}

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
  cuda::Semaphore gate(0);
  {
    const cuda::Pinned pinned(0, pages, 4096);
    gate.hold(stream.get(), 1);
    cuda::copy(memory.data(), pages, 64, stream.get());
  }
  gate.signal(1);
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
  fake::set_devices(2);
  const PinnedBytes source(256);
  const DeviceMemory target(1, 256);
  EXPECT_EQ(reduced(source.data(), target.data(), 64), cudaErrorIllegalAddress);
  EXPECT_EQ(cudaSetDevice(1), cudaSuccess);
  EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess) << "the other device has not failed";
}

TEST_F(Strictness, TheCurrentDeviceMustBeTheStreams) {
  fake::set_devices(2);
  OwnStream other(1);
  Event event(0);
  EXPECT_THROW(event.record(other.get()), Error);
  EXPECT_EQ(cudaGetLastError(), cudaSuccess) << "the Error has said it";
  const DeviceMemory memory(1, 256);
  const ReduceSource sources[] = {{memory.data()}, {memory.data(), 1}};
  const ReduceTarget target{memory.data()};
  EXPECT_THROW(cuda::reduce({}, sources, {&target, 1}, 4, other.get()), Error);
  const cuda::OnDevice there(1);
  EXPECT_NO_THROW(cuda::reduce({}, sources, {&target, 1}, 4, other.get()));
}

}  // namespace
}  // namespace tutti::internal::cuda_test
