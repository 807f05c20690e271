// Calls on streams, for tests.
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <random>
#include <thread>
#include <vector>

#include "runtime/device_calls.h"
#include "types/kinds.h"

namespace tutti::internal {

// Not one that the default stream waits for, which all ranks of this process share.
class OwnStream {
 public:
  OwnStream() { cuda::check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking)); }
  ~OwnStream() { cudaStreamDestroy(stream_); }
  OwnStream(const OwnStream&) = delete;
  OwnStream& operator=(const OwnStream&) = delete;
  cudaStream_t get() const { return stream_; }
  void finish() const { cuda::check(cudaStreamSynchronize(stream_)); }
  bool is_done() const {
    const cudaError_t state = cudaStreamQuery(stream_);
    if (state == cudaErrorNotReady) return false;
    cuda::check(state);
    return true;
  }

 private:
  cudaStream_t stream_ = nullptr;
};

// The same random calls for all ranks; where the buffers lie, and on which stream a call goes or on none, is each
// rank's own affair.
class RandomCalls {
 public:
  RandomCalls(int calls, int ranks) : ranks_(ranks) {
    std::mt19937_64 random(4711);
    for (int i = 0; i < calls; ++i) {
      const DType dtype = all_dtypes()[random() % all_dtypes().size()];
      const auto ops = ops_of(dtype);
      const Op op = ops[random() % ops.size()];
      const std::size_t most = i % 20 == 0 ? 100'000 : 2000;
      shapes_.push_back({kWithBuffers[random() % std::size(kWithBuffers)], random() % most, dtype, op,
                         static_cast<int>(random() % static_cast<unsigned>(ranks))});
      want_.push_back(expected(shapes_.back(), ranks));
    }
  }

  // Nothing is allocated here once calls are made (the library makes room for its first call, and for longer messages),
  // and nothing is freed before all is over: that waits for the whole device, and so for what other ranks have held.
  void run(Communicator& world) const {
    std::mt19937_64 dice(static_cast<std::uint64_t>(world.rank()) + 100);
    const std::vector<OwnStream> streams(3);
    std::vector<Flown> flown;
    for (std::size_t i = 0; i < shapes_.size(); ++i) {
      // Every third call finds all ranks on the device.
      const auto kind = [&] { return i % 3 == 0 ? MemoryKind::device : kMemoryKinds[dice() % 4]; };
      const MemoryKind in = kind(), out = kind();
      Flown next{std::make_unique<Buffers>(shapes_[i], world.rank(), ranks_, in, out, dice() % 2 == 0)};
      if (dice() % 3 != 0) {
        next.on = &streams[dice() % streams.size()];
        const std::size_t bytes = output_elems(shapes_[i], ranks_, world.rank()) * size_of(shapes_[i].dtype);
        if (bytes > 0 && in != MemoryKind::host && out != MemoryKind::host)
          next.copy = std::make_unique<DeviceBuffer>(MemoryKind::device, bytes);
      }
      flown.push_back(std::move(next));
    }
    world.barrier();
    for (std::size_t i = 0; i < shapes_.size(); ++i) {
      const Flown& each = flown[i];
      if (each.on == nullptr) {
        call(world, shapes_[i], each.buffers->in(), each.buffers->out());
        continue;
      }
      call(world, shapes_[i], each.buffers->in(), each.buffers->out(), {.stream = each.on->get()});
      if (each.copy != nullptr)
        cuda::check(cudaMemcpyAsync(each.copy->data(), each.buffers->out(),
                                    output_elems(shapes_[i], ranks_, world.rank()) * size_of(shapes_[i].dtype),
                                    cudaMemcpyDefault, each.on->get()));
    }
    for (const OwnStream& stream : streams) stream.finish();
    for (std::size_t i = 0; i < flown.size(); ++i) {
      const auto& right = want_[i][static_cast<std::size_t>(world.rank())];
      EXPECT_TRUE(flown[i].buffers->result() == right) << i << ": " << name_of(shapes_[i], ranks_);
      EXPECT_TRUE(flown[i].copy == nullptr || flown[i].copy->read() == right) << i << ", behind it on the stream";
    }
    world.barrier();
  }

 private:
  struct Flown {
    std::unique_ptr<Buffers> buffers;
    const OwnStream* on = nullptr;
    std::unique_ptr<DeviceBuffer> copy;  // of the output, behind the call
  };
  int ranks_;
  std::vector<Shape> shapes_;
  std::vector<std::vector<std::vector<std::byte>>> want_;
};

// Elements of four bytes: of more parts than there are slots, or of one where that takes long.
#ifdef TUTTI_BRIEF
constexpr std::size_t kHeldCount = 10'000;
#else
constexpr std::size_t kHeldCount = 6'500'000;
#endif

// What a program may do while a stream of its own is held for a peer that comes late: fill it beyond what a driver
// takes without waiting, and free memory, which waits for the device. CUDA may let no other thread in meanwhile.
inline void hold_up_cuda_behind_a_call(const Settings& settings) {
  const Shape shape{Collective::all_reduce, kHeldCount, DType::int32, Op::sum, 0};
  std::atomic<bool> made{false};
  const auto thrown = outcomes({settings, settings}, [&](Communicator& world) {
    if (world.rank() == 1) {
      const auto input = random_input(1, shape.count, shape.dtype);
      std::vector<std::byte> output(input.size());
      for (int i = 0; i < 1000 && !made; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(10));
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
      world.all_reduce(ConstBuffer(input.data(), MemoryKind::host, -1), Buffer(output.data(), MemoryKind::host, -1),
                       shape.count, shape.dtype, shape.op);
      EXPECT_TRUE(output == expected(shape, 2)[1]);
      return;
    }
    const Buffers buffers(shape, 0, 2, MemoryKind::device, MemoryKind::device, false);
    const DeviceBuffer other(MemoryKind::device, 64);
    const OwnStream stream;
    void* unused = nullptr;
    cuda::check(cudaMalloc(&unused, 64));
    call(world, shape, buffers.in(), buffers.out(), {.stream = stream.get()});
    made = true;
    std::thread frees([&] { cuda::check(cudaFree(unused)); });
    for (int i = 0; i < 3000; ++i) cuda::check(cudaMemsetAsync(other.data(), i, 64, stream.get()));
    frees.join();
    stream.finish();
    EXPECT_TRUE(buffers.result() == expected(shape, 2)[0]);
  });
  for (const auto& error : thrown) EXPECT_FALSE(error) << error->what();
}

}  // namespace tutti::internal
