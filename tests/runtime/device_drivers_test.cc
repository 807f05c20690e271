// Collectives where CUDA does less than usual: one queue for all streams, one lock for all threads, launches that wait,
// no driver.
#include <gtest/gtest.h>

#include <cstdlib>

#include "fake_cuda/fresh_device.h"
#include "runtime/device_streams.h"

namespace tutti::internal {
namespace {

class NarrowDrivers : public cuda_test::FreshDevice {
 protected:
  NarrowDrivers() {
    settings_.transport = "shm";
    settings_.timeout = std::chrono::seconds(20);
  }
  Settings settings_;
};

TEST_F(NarrowDrivers, ADeviceWithOneQueueForAllStreamsGivesTheBits) {
  fake::set_devices(3);
  fake::set_one_queue();
  const RandomCalls calls(60, 3);
  const auto thrown = outcomes(3, settings_, [&](Communicator& world) {
    cuda::check(cudaSetDevice(world.rank()));  // each has a device, as processes have contexts
    calls.run(world);
  });
  for (const auto& error : thrown) EXPECT_FALSE(error) << error->what();
}

// Nothing may be put on a device ahead: putting it there would wait until it is done.
TEST_F(NarrowDrivers, WhereLaunchesBlockACallOnAStreamIsOverWhenItReturns) {
  ::setenv("CUDA_LAUNCH_BLOCKING", "1", 1);
  const auto thrown = outcomes(2, settings_, [](Communicator& world) {
    const Shape shape{Collective::all_reduce, 1000, DType::int32, Op::sum, 0};
    const Buffers buffers(shape, world.rank(), 2, MemoryKind::device, MemoryKind::device, false);
    const OwnStream stream;
    call(world, shape, buffers.in(), buffers.out(), {.stream = stream.get()});
    EXPECT_TRUE(buffers.result() == expected(shape, 2)[0]);
  });
  ::unsetenv("CUDA_LAUNCH_BLOCKING");
  for (const auto& error : thrown) EXPECT_FALSE(error) << error->what();
}

TEST_F(NarrowDrivers, ADriverWithOneLockHoldsUpNoCall) {
  fake::set_one_lock();
  hold_up_cuda_behind_a_call(settings_);
}

// Whoever frees memory has the lock, and waits for the device, while a call is being put there that waits for the host.
TEST_F(NarrowDrivers, WhoFreesMemoryAllTheTimeHoldsUpNoCall) {
  fake::set_one_lock();
  const Shape shape{Collective::all_reduce, 1000, DType::int32, Op::sum, 0};
  const auto right = expected(shape, 2)[0];
  const auto thrown = outcomes(2, settings_, [&](Communicator& world) {
    const MemoryKind kind = world.rank() == 0 ? MemoryKind::device : MemoryKind::host;
    const Buffers buffers(shape, world.rank(), 2, kind, kind, false);
    const ConstBuffer in(buffers.in(), kind, 0);
    const Buffer out(buffers.out(), kind, 0);
    std::unique_ptr<OwnStream> stream;
    if (world.rank() == 0) stream = std::make_unique<OwnStream>();
    std::atomic<bool> over{false};
    std::thread frees([&] {
      while (world.rank() == 0 && !over) {
        void* some = nullptr;
        cuda::check(cudaMalloc(&some, 64));
        cuda::check(cudaFree(some));
      }
    });
    std::optional<Error> failed;
    try {
      for (int i = 0; i < 40; ++i)
        world.all_reduce(in, out, shape.count, shape.dtype, shape.op,
                         {.stream = stream != nullptr && i % 2 == 0 ? stream->get() : nullptr});
    } catch (const Error& error) {
      failed = error;
    }
    over = true;
    frees.join();
    if (failed) throw Error(*failed);
    if (stream != nullptr) stream->finish();
    EXPECT_TRUE(buffers.result() == right);
    world.barrier();
  });
  for (const auto& error : thrown) EXPECT_FALSE(error) << error->what();
}

// Also when it is only said that they lie there.
TEST_F(NarrowDrivers, WithoutOneDevicesAndStreamsAreRefusedInWords) {
  fake::set_devices(fake::kNoDriver);
  float value = 1;
  const auto on_a_stream = outcomes(1, settings_, [&](Communicator& world) {
    world.all_reduce(std::span(&value, 1), Op::sum, {.stream = reinterpret_cast<void*>(2)});
  })[0];
  ASSERT_TRUE(on_a_stream);
  const std::string said = on_a_stream->what();
  EXPECT_NE(said.find("all_reduce on a stream: no NVIDIA driver is installed here"), std::string::npos) << said;
  const auto of_memory = outcomes(1, settings_, [&](Communicator& world) {
    world.all_reduce(ConstBuffer(&value, MemoryKind::device, 0), Buffer(&value, MemoryKind::device, 0), 1,
                     DType::float32, Op::sum);
  })[0];
  ASSERT_TRUE(of_memory);
  EXPECT_NE(std::string(of_memory->what()).find("all_reduce of device memory: no NVIDIA driver"), std::string::npos)
      << of_memory->what();
}

}  // namespace
}  // namespace tutti::internal
