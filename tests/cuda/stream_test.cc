// Streams, events, copies and gates. Skipped where there is no GPU.
#include "cuda/stream.h"

#include <algorithm>
#include <cstdlib>

#include "cuda/event_pool.h"
#include "cuda/on_gpu.h"
#include "tutti/error.h"

namespace tutti::internal::cuda_test {
namespace {

using cuda::DeviceMemory;
using cuda::Event;
using cuda::EventPool;
using cuda::OnDevice;
using cuda::OwnStream;
using cuda::Semaphore;

int current() {
  int device = -1;
  cuda::check(cudaGetDevice(&device));
  return device;
}

class CudaStream : public OnGpu {};

TEST_F(CudaStream, TheCurrentDeviceIsRestored) {
  int count = 0;
  cuda::check(cudaGetDeviceCount(&count));
  {
    const OnDevice last(count - 1);
    EXPECT_EQ(current(), count - 1);
    const OnDevice first(0);
    EXPECT_EQ(current(), 0);
  }
  EXPECT_EQ(current(), device_);
  EXPECT_THROW(OnDevice{count}, Error);
  EXPECT_EQ(current(), device_);
  cudaGetLastError();
}

TEST_F(CudaStream, OurOwnNeitherWaitsForTheDefaultStreamNorIsWaitedFor) {
  const PinnedBytes source(64, 1), out(64);
  OwnStream own(device_);
  Semaphore gate(device_);
  gate.hold(own.get(), 1);
  cuda::copy(out.data(), source.data(), out.size(), cuda::legacy_stream());
  ASSERT_TRUE(gets_idle(cuda::legacy_stream()));
  EXPECT_TRUE(out.holds(source));
  EXPECT_FALSE(is_idle(own.get()));
  gate.hold(cuda::legacy_stream(), 2);
  gate.signal(1);
  ASSERT_TRUE(gets_idle(own.get()));
  EXPECT_FALSE(is_idle(cuda::legacy_stream()));
  gate.signal(2);
  finish(cuda::legacy_stream());
}

TEST_F(CudaStream, AnEventIsDoneWhenItsStreamIs) {
  OwnStream stream(device_);
  Semaphore gate(device_);
  Event event(device_);
  EXPECT_TRUE(event.is_done()) << "nothing was recorded";
  gate.hold(stream.get(), 1);
  event.record(stream.get());
  wait_a_little();
  EXPECT_FALSE(event.is_done());
  gate.signal(1);
  finish(stream.get());
  EXPECT_TRUE(event.is_done());
}

TEST_F(CudaStream, EventsOfAPoolComeBackAndSayWhatWasRecordedLast) {
  OwnStream stream(device_), other(device_);
  Semaphore gate(device_);
  EventPool pool(device_);
  gate.hold(stream.get(), 1);
  const Event* held = nullptr;
  {
    const auto first = pool.record(stream.get()), second = pool.record(other.get());
    EXPECT_NE(first.get(), second.get());
    ASSERT_TRUE(gets_idle(other.get()));
    EXPECT_FALSE(first->is_done());
    EXPECT_TRUE(second->is_done());
    held = first.get();
  }  // the first comes back last, while its stream is held
  const auto again = pool.record(other.get());
  EXPECT_EQ(again.get(), held);
  ASSERT_TRUE(gets_idle(other.get()));
  EXPECT_TRUE(again->is_done());
  EXPECT_FALSE(is_idle(stream.get()));
  gate.signal(1);
  finish(stream.get());
}

TEST_F(CudaStream, WhatComesAfterAnEventWaitsForWhatWasRecordedThen) {
  const PinnedBytes source(1 << 16, 1), out(1 << 16);
  const DeviceMemory middle(device_, source.size());
  OwnStream first(device_), second(device_);
  Semaphore gate(device_);
  Event event(device_);
  event.hold(second.get());  // for nothing
  gate.hold(first.get(), 1);
  cuda::copy(middle.data(), source.data(), source.size(), first.get());
  event.record(first.get());
  event.hold(second.get());
  cuda::copy(out.data(), middle.data(), out.size(), second.get());
  gate.hold(first.get(), 2);
  event.record(first.get());  // later than `second` asked
  wait_a_little();
  EXPECT_FALSE(is_idle(second.get()));
  gate.signal(1);
  finish(second.get());
  EXPECT_TRUE(out.holds(source));
  EXPECT_FALSE(event.is_done());
  gate.signal(2);
  finish(first.get());
}

TEST_F(CudaStream, CopiesGoBetweenAllMemory) {
  const PinnedBytes source(1001, 7), out(1001);
  const DeviceMemory a(device_, 1001), b(device_, 1001);
  OwnStream stream(device_);
  cuda::copy(a.data(), source.data(), 1001, stream.get());
  cuda::copy(b.data(), a.data(), 1001, stream.get());
  cuda::copy(out.data(), b.data(), 1001, stream.get());
  cuda::copy(nullptr, nullptr, 0, stream.get());
  finish(stream.get());
  EXPECT_TRUE(out.holds(source));
}

TEST_F(CudaStream, RowsAreCopiedAndNothingBetweenThem) {
  constexpr std::size_t kBytes = 1000;
  struct Shape {
    std::size_t to_stride, from_stride, row_bytes, rows;
  };
  OwnStream stream(device_);
  const DeviceMemory there(device_, kBytes);
  for (const Shape& each : {Shape{30, 50, 7, 11},
                            {50, 30, 30, 5},
                            {7, 100, 7, 10},
                            {20, 20, 20, 50},
                            {9, 9, 9, 1},
                            {1, 2, 600, 1},
                            {10, 10, 0, 5},
                            {10, 10, 5, 0}}) {
    const PinnedBytes source(kBytes, 3), out(kBytes, 100);
    std::vector<std::byte> expected = out.copy();
    for (std::size_t row = 0; row < each.rows; ++row) {
      for (std::size_t i = 0; i < each.row_bytes; ++i)
        expected[row * each.to_stride + i] = source.data()[row * each.from_stride + i];
    }
    cuda::copy(there.data(), out.data(), kBytes, stream.get());
    cuda::copy_rows(there.data(), each.to_stride, source.data(), each.from_stride, each.row_bytes, each.rows,
                    cuda::Direction::to_device, stream.get());
    const PinnedBytes back(kBytes, 100);
    cuda::copy(out.data(), there.data(), kBytes, stream.get());
    cuda::copy_rows(back.data(), each.to_stride, there.data(), each.to_stride, each.row_bytes, each.rows,
                    cuda::Direction::from_device, stream.get());
    finish(stream.get());
    EXPECT_TRUE(out.copy() == expected) << each.rows << " rows of " << each.row_bytes;
    EXPECT_TRUE(back.copy() == expected) << each.rows << " rows of " << each.row_bytes << ", back";
  }
}

TEST_F(CudaStream, KnowsWhetherItIsCaptured) {
  OwnStream stream(device_);
  EXPECT_FALSE(cuda::is_capturing(stream.get()));
  cuda::check(cudaStreamBeginCapture(stream.get(), cudaStreamCaptureModeThreadLocal));
  EXPECT_TRUE(cuda::is_capturing(stream.get()));
  cudaGraph_t graph = nullptr;
  cuda::check(cudaStreamEndCapture(stream.get(), &graph));
  EXPECT_FALSE(cuda::is_capturing(stream.get()));
  cudaGraphDestroy(graph);
}

class CudaSemaphore : public OnGpu {};

// Between pinned memory and pinned memory CUDA would copy before it returned.
TEST_F(CudaSemaphore, HoldsAStreamUntilTheHostOpensItThatFar) {
  const PinnedBytes source(64, 1), out(64);
  const DeviceMemory first(device_, 64), second(device_, 64);
  const auto has_come = [&](const DeviceMemory& memory) {
    OwnStream reading(device_);
    cuda::copy(out.data(), memory.data(), 64, reading.get());
    finish(reading.get());
    return out.holds(source);
  };
  OwnStream stream(device_);
  Semaphore gate(device_);
  gate.hold(stream.get(), 1);
  cuda::copy(first.data(), source.data(), 64, stream.get());
  Event copied(device_);
  copied.record(stream.get());
  gate.hold(stream.get(), 2);
  cuda::copy(second.data(), source.data(), 64, stream.get());
  wait_a_little();
  EXPECT_FALSE(copied.is_done());
  gate.signal(1);
  while (!copied.is_done()) wait_a_little();
  EXPECT_TRUE(has_come(first));
  wait_a_little();
  EXPECT_FALSE(is_idle(stream.get()));
  gate.signal(2);
  finish(stream.get());
  EXPECT_TRUE(has_come(second));
  gate.hold(stream.get(), 1);  // is open
  finish(stream.get());
}

// What the host wrote before is there: a copy to the device reads when its turn comes, and not when it is asked for.
// From memory that CUDA pinned itself, and from such as was pinned later.
TEST_F(CudaSemaphore, WhatTheHostWroteBeforeItOpensIsCopied) {
  constexpr std::size_t kMax = 1 << 20;
  const PinnedBytes pinned(kMax), out(kMax);
  std::byte* const pages = static_cast<std::byte*>(std::aligned_alloc(4096, kMax));
  {
    const cuda::Pinned registered(device_, pages, kMax);
    const DeviceMemory there(device_, kMax);
    OwnStream stream(device_);
    Semaphore gate(device_);
    std::uint32_t opened = 0;
    for (std::byte* const source : {pinned.data(), pages})
      for (const std::size_t bytes : {std::size_t{8}, std::size_t{4000}, std::size_t{1} << 16, kMax}) {
        std::fill_n(source, bytes, std::byte{0});
        gate.hold(stream.get(), ++opened);
        cuda::copy(there.data(), source, bytes, stream.get());
        wait_a_little();
        std::fill_n(source, bytes, std::byte{42});
        gate.signal(opened);
        cuda::copy(out.data(), there.data(), bytes, stream.get());
        finish(stream.get());
        EXPECT_EQ(std::count(out.data(), out.data() + bytes, std::byte{42}), static_cast<std::ptrdiff_t>(bytes));
      }
  }
  std::free(pages);
}

TEST_F(CudaSemaphore, IsOpenedByAStreamWhenThatGetsThere) {
  const PinnedBytes source(1 << 16, 1), out(1 << 16);
  const DeviceMemory middle(device_, source.size());
  OwnStream opening(device_), held(device_);
  Semaphore gate(device_), other(device_);
  gate.hold(held.get(), 1);
  cuda::copy(out.data(), middle.data(), out.size(), held.get());
  other.hold(opening.get(), 1);
  cuda::copy(middle.data(), source.data(), source.size(), opening.get());
  gate.signal(1, opening.get());
  wait_a_little();
  EXPECT_FALSE(is_idle(held.get()));
  other.signal(1);
  finish(held.get());
  EXPECT_TRUE(out.holds(source));
}

TEST_F(CudaSemaphore, ThatGoesLetsAllGo) {
  OwnStream stream(device_);
  {
    Semaphore gate(device_);
    gate.hold(stream.get(), 1);
    gate.signal(1);
    gate.hold(stream.get(), 1000);
  }
  finish(stream.get());
}

}  // namespace
}  // namespace tutti::internal::cuda_test
