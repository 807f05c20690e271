// Collectives on streams: by ranks that are threads of one job, and by ranks that only meet over a transport, as
// processes do. Runs on a fake device, and wherever there is one on a real one.
#include <deque>

#include "cuda/stream.h"
#include "runtime/device_streams.h"
#include "runtime/timing.h"

namespace tutti::internal {
namespace {

using namespace std::chrono_literals;

class OnStreams : public OnDevices {};
INSTANTIATE_TEST_SUITE_P(Collectives, OnStreams, testing::Values("shm", "tcp"),
                         [](const auto& it) { return it.param; });

// With ranks that are threads and ranks that are not, over two transports: 1,200 in all.
#ifdef TUTTI_BRIEF
constexpr int kCalls = 60;
#else
constexpr int kCalls = 300;
#endif

Settings settings_of(const std::string& transport) {
  Settings settings;
  settings.transport = transport;
  settings.timeout = 20s;
  return settings;
}

// A communicator's first call on memory of that kind makes what all have use of, which may wait for the device: not to
// be made while that is held.
void warm_up(Communicator& world, const DeviceBuffer& values) {
  world.barrier();
  world.all_reduce(values.data(), values.data(), 1000, DType::int32, Op::sum);
  world.barrier();
}

TEST_P(OnStreams, RandomCallsOfThreadsOnRandomStreamsGiveTheBits) {
  const RandomCalls calls(kCalls, 3);
  Communicator::run_threads(
      3, [&](Communicator& world) { calls.run(world); }, GetParam());
}

TEST_P(OnStreams, RandomCallsOfJobsOnRandomStreamsGiveTheBits) {
  const RandomCalls calls(kCalls, 3);
  for (const auto& error : outcomes(3, settings_of(GetParam()), [&](Communicator& world) { calls.run(world); }))
    EXPECT_FALSE(error) << error->what();
}

TEST_P(OnStreams, ACallOnAStreamReturnsAtOnceAndTheStreamWaits) {
  std::atomic<bool> returned{false};
  const auto thrown = outcomes(2, settings_of(GetParam()), [&](Communicator& world) {
    const Shape shape{Collective::all_reduce, 1000, DType::int32, Op::sum, 0};
    const Buffers buffers(shape, world.rank(), 2, MemoryKind::device, MemoryKind::device, false);
    const OwnStream stream;
    if (world.rank() == 1)
      while (!returned) std::this_thread::yield();
    call(world, shape, buffers.in(), buffers.out(), {.stream = stream.get()});
    if (world.rank() == 0) {
      EXPECT_FALSE(stream.is_done()) << "rank 1 has not entered";
      returned = true;
    }
    stream.finish();
    EXPECT_TRUE(buffers.result() == expected(shape, 2)[static_cast<std::size_t>(world.rank())]);
    world.barrier();
  });
  for (const auto& error : thrown) EXPECT_FALSE(error) << error->what();
}

// What was put on the stream before writes the input; it has not got there when the call is made.
TEST_P(OnStreams, ACallComesAfterWhatItsStreamWasGiven) {
  const auto thrown = outcomes(2, settings_of(GetParam()), [&](Communicator& world) {
    const Shape shape{Collective::all_reduce, 1000, DType::int32, Op::sum, 0};
    const auto input = random_input(world.rank(), 1000, DType::int32);
    const DeviceBuffer source(MemoryKind::pinned, input), in(MemoryKind::device, 4000), out(MemoryKind::device, 4000);
    const OwnStream stream;
    warm_up(world, out);
    cuda::Semaphore gate(0);  // goes behind the barrier: to free its memory may wait for what the other rank has held
    gate.hold(stream.get(), 1);
    cuda::check(cudaMemcpyAsync(in.data(), source.data(), 4000, cudaMemcpyDefault, stream.get()));
    world.all_reduce(in.data(), out.data(), 1000, DType::int32, Op::sum, {.stream = stream.get()});
    std::this_thread::sleep_for(20ms);
    gate.signal(1);
    stream.finish();
    EXPECT_TRUE(out.read() == expected(shape, 2)[0]);
    world.barrier();
  });
  for (const auto& error : thrown) EXPECT_FALSE(error) << error->what();
}

// The ranks are threads, which meet on the device, or by messages if one has its input elsewhere. Each in turn has what
// the call must wait for, and comes last.
TEST_P(OnStreams, ACallWithoutAStreamComesAfterWhatTheDefaultStreamHas) {
  const auto want = expected({Collective::all_reduce, 1000, DType::int32, Op::sum, 0}, 2)[0];
  const auto reduce = [&](Communicator& world, int fills, int last, bool apart) {
    const DeviceBuffer source(MemoryKind::pinned, random_input(world.rank(), 1000, DType::int32));
    const DeviceBuffer out(MemoryKind::device, 4000);
    DeviceBuffer in(MemoryKind::device, source.read());
    warm_up(world, out);
    cuda::Semaphore gate(0);
    if (world.rank() == fills) {
      in.write(std::vector<std::byte>(4000));
      gate.hold(cuda::legacy_stream(), 1);
      cuda::check(cudaMemcpyAsync(in.data(), source.data(), 4000, cudaMemcpyDefault, cuda::legacy_stream()));
    }
    world.barrier();
    const std::jthread opener([&] {
      std::this_thread::sleep_for(20ms);
      if (world.rank() == fills) gate.signal(1);
    });
    if (world.rank() == last) std::this_thread::sleep_for(5ms);
    world.all_reduce(apart && world.rank() != fills ? source.data() : in.data(), out.data(), 1000, DType::int32,
                     Op::sum);
    EXPECT_TRUE(out.read() == want) << "rank " << fills << " fills, rank " << last << " comes last"
                                    << (apart ? ", apart" : "");
    world.barrier();
  };
  const auto reduce_each = [&](Communicator& world) {
    for (const int fills : {0, 1})
      for (const int last : {0, 1})
        for (const bool apart : {false, true}) reduce(world, fills, last, apart);
  };
  Communicator::run_threads(2, reduce_each, GetParam());
}

TEST_P(OnStreams, AStreamGoesOnWhenItsCallFails) {
  const auto thrown = outcomes(2, settings_of(GetParam()), [&](Communicator& world) {
    if (world.rank() == 1) return world.abort("enough");
    const DeviceBuffer values(MemoryKind::device, 4000);
    const OwnStream stream;
    Work work =
        world.start_all_reduce(values.data(), values.data(), 1000, DType::int32, Op::sum, {.stream = stream.get()});
    stream.finish();
    EXPECT_THROW(work.wait(), Error);
    world.barrier();
  });
  ASSERT_TRUE(thrown[0]);
  EXPECT_EQ(thrown[0]->code, ErrorCode::aborted) << thrown[0]->what();
}

TEST_P(OnStreams, ADeviceThatDoesNotComeToTheCallIsNamedInTime) {
  auto let_go = std::chrono::steady_clock::now();
  const auto thrown = outcomes(2, settings_of(GetParam()), [&](Communicator& world) {
    const DeviceBuffer values(MemoryKind::device, 4000);
    const OwnStream stream;
    cuda::Semaphore gate(0);
    warm_up(world, values);
    if (world.rank() == 0) {  // the only one that waits too long
      gate.hold(stream.get(), 1);
      world.set_timeout(1s);
    }
    Work work =
        world.start_all_reduce(values.data(), values.data(), 1000, DType::int32, Op::sum, {.stream = stream.get()});
    if (world.rank() == 0) {
      wait_for_failure(world);
      let_go = std::chrono::steady_clock::now();
      gate.signal(1);  // until then the call keeps what the device may still touch
    }
    work.wait();
  });
  EXPECT_LT(std::chrono::steady_clock::now() - let_go, 9s) << "the device was waited for in vain";
  ASSERT_TRUE(thrown[0]);
  EXPECT_EQ(thrown[0]->code, ErrorCode::timeout);
  EXPECT_NE(std::string(thrown[0]->what()).find("the GPU of rank 0 has not come to all_reduce #4"), std::string::npos)
      << thrown[0]->what();
  ASSERT_TRUE(thrown[1]);
}

// One thread drives them all, and waits for the first; the time of the others runs meanwhile.
TEST_P(OnStreams, CallsOfSeveralCommunicatorsThatNobodyJoinsAreGivenUpTogether) {
  std::atomic<bool> given_up{false};
  const auto thrown = outcomes(2, settings_of(GetParam()), [&](Communicator& world) {
    const std::vector<OwnStream> streams(4);
    std::deque<DeviceBuffer> values;  // one each: those that are given up may all be written to at once
    std::vector<Communicator> some;
    for (std::size_t i = 0; i < streams.size(); ++i) {
      some.push_back(world.split(0));
      warm_up(some.back(), values.emplace_back(MemoryKind::device, 4000));
    }
    if (world.rank() == 1) {
      for (int i = 0; i < 20'000 && !given_up; ++i) std::this_thread::sleep_for(1ms);
      return;
    }
    for (Communicator& one : some) one.set_timeout(2s);
    std::vector<Work> works;
    const auto begun = std::chrono::steady_clock::now();
    for (std::size_t i = 0; i < some.size(); ++i)
      works.push_back(some[i].start_all_reduce(values[i].data(), values[i].data(), 1000, DType::int32, Op::sum,
                                               {.stream = streams[i].get()}));
    for (const OwnStream& stream : streams) stream.finish();
    EXPECT_LT(std::chrono::steady_clock::now() - begun, 6500ms) << "one after the other takes more than 8 s";
    given_up = true;
    for (Work& work : works) EXPECT_THROW(work.wait(), Error);
  });
  for (const auto& error : thrown) EXPECT_FALSE(error) << error->what();
}

// Its copies wait on the device from the start, and the device is waited for before the call is.
// Ranks that share a device are in one process here: CUDA holds up a rank's calls while another one waits for the
// device.
TEST_P(OnStreams, AStartedCallNeedsNoDriving) {
  std::atomic<int> started{0};
  const auto thrown = outcomes(2, settings_of(GetParam()), [&](Communicator& world) {
    const Shape shape{Collective::all_reduce, 1000, DType::int32, Op::sum, 0};
    const Buffers buffers(shape, world.rank(), 2, MemoryKind::device, MemoryKind::device, false);
    const DeviceBuffer values(MemoryKind::device, 4000);
    warm_up(world, values);
    Work work = world.start_all_reduce(buffers.in(), buffers.out(), shape.count, shape.dtype, shape.op);
    ++started;
    for (const auto until = std::chrono::steady_clock::now() + 20s; started < 2; std::this_thread::yield())
      if (std::chrono::steady_clock::now() > until) return ADD_FAILURE() << "the other rank has not started its call";
    cuda::check(cudaDeviceSynchronize());
    work.wait();
    EXPECT_TRUE(buffers.result() == expected(shape, 2)[0]);
    world.barrier();
  });
  for (const auto& error : thrown) EXPECT_FALSE(error) << error->what();
}

TEST_P(OnStreams, WhatTheProgramDoesInCudaMeanwhileHoldsUpNoCall) {
  hold_up_cuda_behind_a_call(settings_of(GetParam()));
}

// Left without waiting for it.
TEST_P(OnStreams, ACommunicatorIsLeftOnlyWhenItsStreamsHaveWhatTheyWait) {
  const Shape shape{Collective::broadcast, 100'000, DType::float32, Op::sum, 1};
  const auto thrown = outcomes(2, settings_of(GetParam()), [&](Communicator& world) {
    const Buffers buffers(shape, world.rank(), 2, MemoryKind::device, MemoryKind::device, true);
    const OwnStream stream;
    {
      Communicator some = world.split(0);
      call(some, shape, buffers.in(), buffers.out(), {.stream = stream.get()});
    }
    stream.finish();
    EXPECT_TRUE(buffers.result() == expected(shape, 2)[0]);
    world.barrier();
  });
  for (const auto& error : thrown) EXPECT_FALSE(error) << error->what();
}

}  // namespace
}  // namespace tutti::internal
