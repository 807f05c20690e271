#include "bench/row_limit_gpu.h"

#include <algorithm>
#include <thread>
#include <vector>

#include "bench/limit.h"
#include "bench/measure.h"
#include "cuda/memory.h"
#include "cuda/stopwatch.h"
#include "cuda/stream.h"
#include "types/collective.h"

namespace tutti::internal::tools {
namespace {

constexpr double kRoundUs = 50e3;  // a round takes about as long, or less
constexpr std::size_t kFewestCalls = 3, kMaxCalls = 10'000;
constexpr std::size_t kPieceBytes = 8 << 20;  // of pinned memory, used again and again, as the library's own is

// All ranks' memory is on one device. Rank 0 copies, with as few copies as the buffers allow.
class WithinMemory final : public GpuLimit {
 public:
  WithinMemory(Communicator& world, const BenchOptions& options, const BenchBuffers& memory, int device)
      : GpuLimit(world, options),
        most_(memory.bytes()),
        buffers_(2 * static_cast<std::size_t>(world.size())),
        stream_(device),
        stopwatch_(device) {
    const std::uint64_t mine[] = {reinterpret_cast<std::uint64_t>(memory.data(0)),
                                  reinterpret_cast<std::uint64_t>(memory.data(1))};
    world.all_gather(mine, buffers_.data(), 2, DType::uint64);
  }

 private:
  double time(std::size_t bytes, std::size_t calls) override {
    if (world_.rank() != 0) return 0;
    stopwatch_.start(stream_.get());
    for (std::size_t i = 0; i < calls; ++i) call(bytes);
    stopwatch_.stop(stream_.get());
    return stopwatch_.us() / static_cast<double>(calls);
  }
  void call(std::size_t bytes) const {
    std::size_t left = 1;  // rounded up, as half of it is read and half is written
    for (int rank = 0; rank < world_.size(); ++rank) {
      const GpuTraffic traffic = gpu_traffic(options_, rank, world_.size(), bytes);
      left += traffic.read + traffic.written;
    }
    left /= 2;
    for (std::size_t rank = 0; left > 0; ++rank) {
      const std::size_t some = std::min(left, most_);
      cuda::copy(buffer(2 * rank + 1), buffer(2 * rank), some, stream_.get());
      left -= some;
    }
  }
  std::byte* buffer(std::size_t i) const { return reinterpret_cast<std::byte*>(buffers_[i]); }

  std::size_t most_;                    // bytes of each buffer
  std::vector<std::uint64_t> buffers_;  // two of each rank
  cuda::OwnStream stream_;
  cuda::Stopwatch stopwatch_;
};

// Each way on a stream of its own.
class ThroughPinned final : public GpuLimit {
 public:
  ThroughPinned(Communicator& world, const BenchOptions& options, const BenchBuffers& memory, int device)
      : GpuLimit(world, options),
        memory_(memory),
        pinned_in_(device, std::min(memory.bytes(), kPieceBytes)),
        pinned_out_(device, std::min(memory.bytes(), kPieceBytes)),
        in_(device),
        out_(device),
        fetched_(device),
        delivered_(device) {}

 private:
  double time(std::size_t bytes, std::size_t calls) override {
    const GpuTraffic traffic = gpu_traffic(options_, world_.rank(), world_.size(), bytes);
    const std::size_t piece = pinned_in_.bytes(), most = std::max(traffic.read, traffic.written);
    const double start = now_us();
    for (std::size_t i = 0; i < calls; ++i) {
      for (std::size_t at = 0; at < most; at += piece) {  // by turns, so that both are under way all along
        if (at < traffic.read)
          cuda::copy(pinned_in_.data(), memory_.data(0) + at, std::min(piece, traffic.read - at), in_.get());
        if (at < traffic.written)
          cuda::copy(memory_.data(1) + at, pinned_out_.data(), std::min(piece, traffic.written - at), out_.get());
      }
    }
    fetched_.record(in_.get());
    delivered_.record(out_.get());
    while (!fetched_.is_done() || !delivered_.is_done()) std::this_thread::yield();
    return (now_us() - start) / static_cast<double>(calls);
  }

  const BenchBuffers& memory_;
  cuda::PinnedMemory pinned_in_, pinned_out_;
  cuda::OwnStream in_, out_;  // from the device, to it
  cuda::Event fetched_, delivered_;
};

}  // namespace

GpuTraffic gpu_traffic(const BenchOptions& options, int rank, int ranks, std::size_t bytes) {
  const Distribution holds(options.collective, ranks, options.root);
  const std::size_t row_bytes = bytes / static_cast<std::size_t>(holds.traits.buffer_rows(ranks));
  const RowRange in = holds.input(rank), out = holds.output(rank);
  GpuTraffic traffic{static_cast<std::size_t>(in.count) * row_bytes, static_cast<std::size_t>(out.count) * row_bytes};
  if (options.collective == Collective::broadcast && in.count > 0) traffic.written = 0;  // it is there already
  return traffic;
}

std::optional<double> GpuLimit::measure_us(std::size_t bytes) {
  if (bytes == 0) return std::nullopt;
  std::uint64_t calls = static_cast<std::uint64_t>(options_.iterations);
  if (calls == 0) {
    world_.barrier();
    const double us = std::max(slowest_us(world_, {time(bytes, kFewestCalls)}), kRoundUs / kMaxCalls);
    calls = std::clamp(static_cast<std::uint64_t>(kRoundUs / us), kFewestCalls, kMaxCalls);
  }
  time(bytes, 1);  // a warm start
  std::vector<double> rounds;
  for (int round = 0; round < options_.rounds; ++round) {
    world_.barrier();
    rounds.push_back(time(bytes, calls));
  }
  return slowest_us(world_, rounds);
}

std::unique_ptr<GpuLimit> gpu_limit(Communicator& world, const BenchOptions& options, const BenchBuffers& memory,
                                    int device) {
  if (options.transport == "inproc") return std::make_unique<WithinMemory>(world, options, memory, device);
  return std::make_unique<ThroughPinned>(world, options, memory, device);
}

}  // namespace tutti::internal::tools
