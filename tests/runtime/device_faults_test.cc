// What a fake device counts, and fails: how many kernels and copies a call takes, who hears of what a device
// refuses, and that nothing is left behind.
#include <gtest/gtest.h>

#include "cuda/stream.h"
#include "fake_cuda/fresh_device.h"
#include "runtime/device_streams.h"

namespace tutti::internal {
namespace {

using fake::calls;

class DeviceFaults : public cuda_test::FreshDevice {};

// All ranks' inputs and outputs are device memory; or rank 0's are the host's.
void reduce_once(Communicator& world, bool mixed, std::size_t count = 1000) {
  const MemoryKind kind = mixed && world.rank() == 0 ? MemoryKind::host : MemoryKind::device;
  const Shape shape{Collective::all_reduce, count, DType::int32, Op::sum, 0};
  const Buffers buffers(shape, world.rank(), world.size(), kind, kind, false);
  world.barrier();
  call(world, shape, buffers.in(), buffers.out());
  EXPECT_TRUE(buffers.result() == expected(shape, world.size())[0]);
  world.barrier();
}

TEST_F(DeviceFaults, RanksOnOneDeviceTakeOneKernelAndNoCopy) {
  for (const int ranks : {1, 2, 4, 8}) {
    std::uint64_t launches = 0, copies = 0;
    Communicator::run_threads(ranks, [&](Communicator& world) {
      const DeviceBuffer in(MemoryKind::device, 4000), out(MemoryKind::device, 4000);
      world.barrier();
      if (world.rank() == 0) launches = calls(fake::Call::launch), copies = calls(fake::Call::copy);
      world.barrier();
      world.all_reduce(in.data(), out.data(), 1000, DType::float32, Op::sum);
      world.barrier();
      if (world.rank() == 0) {
        EXPECT_EQ(calls(fake::Call::launch) - launches, 1u) << ranks;
        EXPECT_EQ(calls(fake::Call::copy) - copies, 0u) << ranks;
      }
      world.barrier();
    });
  }
  EXPECT_EQ(fake::outstanding(), fake::Outstanding{});
}

TEST_F(DeviceFaults, NothingIsLeftBehind) {
  for (const bool mixed : {false, true}) {
    for (const std::string& transport : kTransports)
      Communicator::run_threads(
          3, [&](Communicator& world) { reduce_once(world, mixed); }, transport);
    EXPECT_EQ(fake::outstanding(), fake::Outstanding{});
  }
}

// Its events go back to what the communicator keeps.
TEST_F(DeviceFaults, AWorkMayOutliveItsCommunicator) {
  Communicator::run_threads(2, [](Communicator& world) {
    const DeviceBuffer values(MemoryKind::device, 4000);
    std::optional<Work> work;
    {
      Communicator part = world.split(0);
      work = part.start_all_reduce(values.data(), values.data(), 1000, DType::float32, Op::sum);
    }
    work->wait();
  });
}

TEST_F(DeviceFaults, RanksOnSeveralDevicesMeetByMessages) {
  fake::set_devices(3);
  Communicator::run_threads(3, [](Communicator& world) {
    cuda::check(cudaSetDevice(world.rank()));
    reduce_once(world, false);
  });
  // A rank's input on one device, its output on another.
  const auto body = [](Communicator& world) {
    const Shape shape{Collective::broadcast, 2'200'001, DType::int32, Op::sum, 0};
    const DeviceBuffer in(MemoryKind::device, random_input(world.rank(), shape.count, shape.dtype));
    cuda::check(cudaSetDevice(1 + world.rank()));
    const DeviceBuffer out(MemoryKind::device, shape.count * 4);
    // More than a part; and what takes in on one device and puts out on another.
    world.broadcast(in.data(), shape.count, shape.dtype, 0);
    EXPECT_TRUE(in.read() == expected(shape, 2)[0]);
    world.all_gather(in.data(), out.data(), shape.count / 2, shape.dtype);
    auto half = in.read();
    half.resize(shape.count / 2 * 4);
    auto twice = half;
    twice.insert(twice.end(), half.begin(), half.end());
    auto gathered = out.read();
    gathered.resize(twice.size());
    EXPECT_TRUE(gathered == twice);
    world.barrier();
  };
  Communicator::run_threads(2, body);
  Settings settings;
  settings.transport = "shm";
  for (const auto& error : outcomes(2, settings, body)) EXPECT_FALSE(error) << error->what();
  EXPECT_EQ(fake::outstanding(), fake::Outstanding{});
}

// Of a stream of a device that is not the current one, with buffers of a third kind.
TEST_F(DeviceFaults, AStreamIsOfTheDeviceThatItWasMadeOn) {
  fake::set_devices(2);
  Communicator::run_threads(2, [](Communicator& world) {
    cuda::check(cudaSetDevice(1));
    cudaStream_t stream = nullptr;
    cuda::check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    cuda::check(cudaSetDevice(0));
    for (const MemoryKind kind : {MemoryKind::host, MemoryKind::device}) {
      const Shape shape{Collective::all_reduce, 1000, DType::int32, Op::sum, 0};
      const Buffers buffers(shape, world.rank(), 2, kind, kind, false);
      call(world, shape, buffers.in(), buffers.out(), {.stream = stream});
      cuda::check(cudaStreamSynchronize(stream));
      EXPECT_TRUE(buffers.result() == expected(shape, 2)[0]);
    }
    world.barrier({.stream = stream});
    cuda::check(cudaStreamSynchronize(stream));
    cuda::check(cudaStreamDestroy(stream));
  });
  EXPECT_EQ(fake::outstanding(), fake::Outstanding{});
}

// What body threw on each rank of a job of threads.
std::vector<std::string> errors(int ranks, const std::function<void(Communicator&)>& body) {
  std::vector<std::string> said(static_cast<std::size_t>(ranks));
  Communicator::run_threads(
      ranks,
      [&](Communicator& world) {
        try {
          body(world);
        } catch (const Error& error) {
          said[static_cast<std::size_t>(world.rank())] = error.what();
        }
      },
      "shm");
  return said;
}

TEST_F(DeviceFaults, WhatADeviceRefusesIsToldToEveryRankAndNothingIsLeft) {
  struct Fault {
    fake::Call call;
    bool mixed;
    cudaError_t error;
  };
  const Fault faults[] = {{fake::Call::launch, false, cudaErrorInvalidDeviceFunction},
                          {fake::Call::copy, true, cudaErrorInvalidValue},
                          {fake::Call::registration, true, cudaErrorMemoryAllocation}};
  for (const Fault& fault : faults) {
    const auto said = errors(2, [&](Communicator& world) {
      const bool on_host = fault.mixed && world.rank() == 0;
      const DeviceBuffer values(on_host ? MemoryKind::host : MemoryKind::device, 4000);
      world.barrier();
      if (world.rank() == 0) fake::fail(fault.call, 1, fault.error);
      world.barrier();
      world.all_reduce(values.data(), values.data(), 1000, DType::float32, Op::sum);
    });
    const std::string name = cudaGetErrorName(fault.error);
    EXPECT_NE((said[0] + said[1]).find(name), std::string::npos) << name;
    EXPECT_FALSE(said[1].empty()) << name;
    EXPECT_TRUE(fault.call == fake::Call::registration || !said[0].empty()) << name;
    EXPECT_EQ(fake::outstanding(), fake::Outstanding{}) << name;
  }
}

TEST_F(DeviceFaults, ADeviceThatFailsForGoodIsToldToEveryRank) {
  for (const bool mixed : {false, true}) {
    const auto said = errors(2, [&](Communicator& world) {
      const DeviceBuffer values(mixed && world.rank() == 0 ? MemoryKind::host : MemoryKind::device, 4000);
      world.barrier();
      if (world.rank() == 0) fake::fail(mixed ? fake::Call::copy : fake::Call::launch, 1, cudaErrorIllegalAddress);
      world.barrier();
      world.all_reduce(values.data(), values.data(), 1000, DType::float32, Op::sum);
    });
    for (const std::string& each : said) EXPECT_NE(each.find("cudaErrorIllegalAddress"), std::string::npos) << each;
    fake::reset();
  }
}

// Found by asking, since nothing more comes from it.
TEST_F(DeviceFaults, ADeviceThatFailsUnderACallOnAStreamIsNamed) {
  Settings settings;
  settings.transport = "shm";
  const auto thrown = outcomes(2, settings, [](Communicator& world) {
    const MemoryKind kind = world.rank() == 0 ? MemoryKind::device : MemoryKind::host;
    const DeviceBuffer values(kind, 4000);
    world.barrier();
    if (world.rank() == 1)
      return world.all_reduce(ConstBuffer(values.data(), kind, -1), Buffer(values.data(), kind, -1), 1000, DType::int32,
                              Op::sum);
    const OwnStream stream;
    fake::fail(fake::Call::copy, 1, cudaErrorIllegalAddress);
    world.start_all_reduce(values.data(), values.data(), 1000, DType::int32, Op::sum, {.stream = stream.get()}).wait();
  });
  for (const auto& error : thrown) {
    ASSERT_TRUE(error);
    EXPECT_NE(std::string(error->what()).find("cudaErrorIllegalAddress"), std::string::npos) << error->what();
  }
}

// With a call in flight whose words must not be overtaken by those of the one that is given up.
TEST_F(DeviceFaults, ACallThatIsPartlyRefusedIsGivenUpAndTheDeviceRunsDry) {
  Settings settings;
  settings.transport = "shm";
  for (const std::uint64_t copy : {1u, 2u}) {
    const auto thrown = outcomes(2, settings, [&](Communicator& world) {
      const DeviceBuffer values(MemoryKind::device, 4000), more(MemoryKind::device, 4000);
      const OwnStream stream;
      world.barrier();
      if (world.rank() == 1) {
        std::this_thread::sleep_for(std::chrono::milliseconds(50));
        std::vector<std::byte> own(4000);
        const ConstBuffer in(own.data(), MemoryKind::host, -1);
        const Buffer out(own.data(), MemoryKind::host, -1);
        world.all_reduce(in, out, 0, DType::int32, Op::sum);
        world.all_reduce(in, out, 1000, DType::int32, Op::sum);
        return world.barrier();
      }
      const CallOptions on{.stream = stream.get()};
      world.all_reduce(values.data(), values.data(), 0, DType::int32, Op::sum, on);
      fake::fail(fake::Call::copy, copy, cudaErrorInvalidValue);
      if (copy == 1) {
        EXPECT_THROW(world.all_reduce(more.data(), more.data(), 1000, DType::int32, Op::sum, on), Error);
      } else {
        EXPECT_THROW(world.start_all_reduce(more.data(), more.data(), 1000, DType::int32, Op::sum, on).wait(), Error);
      }
      cuda::check(cudaDeviceSynchronize());
      world.barrier();
    });
    for (const auto& error : thrown) {
      ASSERT_TRUE(error);
      EXPECT_NE(std::string(error->what()).find("cudaErrorInvalidValue"), std::string::npos) << error->what();
    }
    EXPECT_EQ(fake::outstanding(), fake::Outstanding{});
  }
}

// Also of the last one, by when the call may have come to its end.
TEST_F(DeviceFaults, WhateverEventOfACallIsRefusedItsCallerHearsOfIt) {
  Settings settings;
  settings.transport = "shm";
  for (const Collective collective : {Collective::all_reduce, Collective::barrier}) {
    std::uint64_t of_a_call = 0;
    for (std::uint64_t nth = 0; nth <= of_a_call; ++nth) {  // 0: none, to count them
      const auto thrown = outcomes(2, settings, [&](Communicator& world) {
        const MemoryKind kind = world.rank() == 0 ? MemoryKind::device : MemoryKind::host;
        const DeviceBuffer values(kind, 4000);
        const OwnStream stream;
        const auto make = [&](const CallOptions& options) {
          if (collective == Collective::barrier) return world.barrier(options);
          world.all_reduce(ConstBuffer(values.data(), kind, 0), Buffer(values.data(), kind, 0), 1000, DType::int32,
                           Op::sum, options);
        };
        make({});
        world.barrier();
        if (world.rank() == 1) {
          make({});
          return world.barrier();
        }
        const std::uint64_t before = calls(fake::Call::event);
        if (nth > 0) fake::fail(fake::Call::event, nth, cudaErrorInvalidValue);
        try {
          make({.stream = stream.get()});
        } catch (const Error&) {
          stream.finish();
          throw;
        }
        EXPECT_EQ(nth, 0u) << "of " << of_a_call;
        of_a_call = calls(fake::Call::event) - before;
        stream.finish();
        world.barrier();
      });
      for (const auto& error : thrown) ASSERT_EQ(error.has_value(), nth > 0) << nth;
      if (nth > 0) {
        EXPECT_NE(std::string(thrown[0]->what()).find("cudaErrorInvalidValue"), std::string::npos) << thrown[0]->what();
      }
      EXPECT_EQ(fake::outstanding(), fake::Outstanding{});
    }
    EXPECT_GT(of_a_call, 0u);
  }
}

// Whether the device has failed is asked meanwhile, in a way that leaves captures alone.
TEST_F(DeviceFaults, ACaptureElsewhereDoesNotDisturbACallThatWaitsForItsDevice) {
  Settings settings;
  settings.transport = "shm";
  const auto thrown = outcomes(2, settings, [](Communicator& world) {
    const DeviceBuffer values(MemoryKind::device, random_input(world.rank(), 1000, DType::int32));
    const OwnStream stream;
    cudaStream_t captured = nullptr;
    cuda::check(cudaStreamCreate(&captured));
    const DeviceBuffer others(MemoryKind::device, 4000);
    world.all_reduce(others.data(), others.data(), 1000, DType::int32, Op::sum);  // makes what all have use of
    world.barrier();
    {
      cuda::Semaphore gate(0);
      gate.hold(stream.get(), 1);
      world.all_reduce(values.data(), values.data(), 1000, DType::int32, Op::sum, {.stream = stream.get()});
      cuda::check(cudaStreamBeginCapture(captured, cudaStreamCaptureModeGlobal));
      std::this_thread::sleep_for(std::chrono::milliseconds(300));
      cudaGraph_t graph = nullptr;
      cuda::check(cudaStreamEndCapture(captured, &graph));
    }
    cuda::check(cudaStreamSynchronize(stream.get()));
    world.barrier();
    EXPECT_TRUE(values.read() == expected_reduction(2, 1000, DType::int32, Op::sum));
    cuda::check(cudaStreamDestroy(captured));
  });
  for (const auto& error : thrown) EXPECT_FALSE(error) << error->what();
}

TEST_F(DeviceFaults, AStreamThatIsBeingCapturedIsRefused) {
  const auto said = errors(1, [&](Communicator& world) {
    const DeviceBuffer values(MemoryKind::device, 4000);
    cudaStream_t stream = nullptr;
    cuda::check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    cuda::check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    world.all_reduce(values.data(), values.data(), 1000, DType::float32, Op::sum, {.stream = stream});
  });
  EXPECT_NE(said[0].find("captured into a graph"), std::string::npos) << said[0];
}

}  // namespace
}  // namespace tutti::internal
