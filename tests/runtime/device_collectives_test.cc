// Collectives over memory of every kind, rank by rank: the bits that host memory gives. Runs on a pretended device, and
// wherever there is one on a real one.
#include <gtest/gtest.h>

#include <map>
#include <mutex>
#include <random>

#include "cuda/device.h"
#include "runtime/device_buffer.h"
#include "runtime/ranks.h"

namespace tutti {
namespace {

class OnDevices : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    const cuda::Devices found = cuda::find_devices();
    if (found.usable.empty()) GTEST_SKIP() << found.why_none();
  }
};
INSTANTIATE_TEST_SUITE_P(Collectives, OnDevices, testing::ValuesIn(kTransports),
                         [](const auto& it) { return it.param; });

struct Shape {
  Collective collective;
  std::size_t count;
  DType dtype;
  Op op;
  int root;
};

// Elements of a rank's input and output.
std::size_t input_elems(const Shape& shape, int ranks) {
  return shape.collective == Collective::reduce_scatter ? shape.count * static_cast<std::size_t>(ranks) : shape.count;
}
std::size_t output_elems(const Shape& shape, int ranks) {
  return shape.collective == Collective::all_gather ? shape.count * static_cast<std::size_t>(ranks) : shape.count;
}
// Of the output, where the input lies in it, or the other way round.
std::size_t own_part(const Shape& shape, int rank) {
  return static_cast<std::size_t>(rank) * shape.count * size_of(shape.dtype);
}

void call(Communicator& world, const Shape& shape, std::byte* in, std::byte* out, const CallOptions& options = {}) {
  switch (shape.collective) {
    case Collective::all_reduce: world.all_reduce(in, out, shape.count, shape.dtype, shape.op, options); break;
    case Collective::reduce_scatter: world.reduce_scatter(in, out, shape.count, shape.dtype, shape.op, options); break;
    case Collective::all_gather: world.all_gather(in, out, shape.count, shape.dtype, options); break;
    case Collective::broadcast: world.broadcast(out, shape.count, shape.dtype, shape.root, options); break;
    case Collective::barrier: world.barrier(options); break;
  }
}

// A rank's buffers for one call, with its input in them, and what must come out.
class Buffers {
 public:
  Buffers(const Shape& shape, int rank, int ranks, MemoryKind in, MemoryKind out, bool in_place)
      : shape_(shape), rank_(rank), in_place_(in_place || shape.collective == Collective::broadcast) {
    const auto input = random_input(rank, input_elems(shape, ranks), shape.dtype);
    const std::size_t out_bytes = output_elems(shape, ranks) * size_of(shape.dtype);
    if (in_place_) {
      std::vector<std::byte> whole(std::max(input.size(), out_bytes));
      if (!input.empty())
        std::memcpy(&whole[shape.collective == Collective::all_gather ? own_part(shape, rank) : 0], input.data(),
                    input.size());
      first_.emplace(in, whole);
    } else {
      first_.emplace(in, input);
      second_.emplace(out, out_bytes);
    }
    out_bytes_ = out_bytes;
  }
  std::byte* in() const {
    return first_->data() + (in_place_ && shape_.collective == Collective::all_gather ? own_part(shape_, rank_) : 0);
  }
  std::byte* out() const { return in_place_ ? first_->data() + out_offset() : second_->data(); }
  std::vector<std::byte> result() const {
    auto whole = in_place_ ? first_->read() : second_->read();
    const auto first = whole.begin() + static_cast<std::ptrdiff_t>(in_place_ ? out_offset() : 0);
    return {first, first + static_cast<std::ptrdiff_t>(out_bytes_)};
  }

 private:
  std::size_t out_offset() const {
    return shape_.collective == Collective::reduce_scatter ? own_part(shape_, rank_) : 0;
  }
  Shape shape_;
  int rank_;
  bool in_place_;
  std::size_t out_bytes_;
  std::optional<DeviceBuffer> first_, second_;
};

// What must come out, by rank.
std::vector<std::vector<std::byte>> expected(const Shape& shape, int ranks) {
  std::vector<std::vector<std::byte>> results(static_cast<std::size_t>(ranks));
  std::vector<std::vector<std::byte>> inputs;
  for (int r = 0; r < ranks; ++r) inputs.push_back(random_input(r, input_elems(shape, ranks), shape.dtype));
  std::vector<std::byte> whole;
  if (shape.collective == Collective::all_reduce || shape.collective == Collective::reduce_scatter) {
    whole = expected_reduction(ranks, input_elems(shape, ranks), shape.dtype, shape.op);
  } else if (shape.collective == Collective::all_gather) {
    for (const auto& input : inputs) whole.insert(whole.end(), input.begin(), input.end());
  } else {
    whole = inputs[static_cast<std::size_t>(shape.root)];
  }
  for (int r = 0; r < ranks; ++r) {
    auto& result = results[static_cast<std::size_t>(r)];
    if (shape.collective == Collective::reduce_scatter) {
      const auto first = whole.begin() + static_cast<std::ptrdiff_t>(own_part(shape, r));
      result.assign(first, first + static_cast<std::ptrdiff_t>(shape.count * size_of(shape.dtype)));
    } else {
      result = whole;
    }
  }
  return results;
}

constexpr Collective kWithBuffers[] = {Collective::all_reduce, Collective::reduce_scatter, Collective::all_gather,
                                       Collective::broadcast};

// Element i of rank r's input.
std::int32_t number(int rank, std::size_t i) {
  return static_cast<std::int32_t>(static_cast<std::uint32_t>(i) * 2654435761u + static_cast<std::uint32_t>(rank));
}
template <class Value>
std::vector<std::byte> each(std::size_t count, const Value& value) {
  std::vector<std::byte> bytes(count * 4);
  for (std::size_t i = 0; i < count; ++i) {
    const std::int32_t element = value(i);
    std::memcpy(&bytes[i * 4], &element, 4);
  }
  return bytes;
}
std::vector<std::byte> numbers(int rank, std::size_t count) {
  return each(count, [&](std::size_t i) { return number(rank, i); });
}
// What sums, parts and copies of them are on rank `me`.
std::vector<std::byte> combined_numbers(const Shape& shape, int me, int ranks) {
  const auto sum = [&](std::size_t i) {
    std::uint32_t total = 0;
    for (int r = 0; r < ranks; ++r) total += static_cast<std::uint32_t>(number(r, i));
    return static_cast<std::int32_t>(total);
  };
  const std::size_t own = static_cast<std::size_t>(me) * shape.count;
  return each(output_elems(shape, ranks), [&](std::size_t i) {
    switch (shape.collective) {
      case Collective::all_reduce: return sum(i);
      case Collective::reduce_scatter: return sum(own + i);
      case Collective::all_gather: return number(static_cast<int>(i / shape.count), i % shape.count);
      default: return number(shape.root, i);
    }
  });
}

std::string name_of(const Shape& shape, int ranks) {
  return std::string(to_string(shape.collective)) + " of " + std::to_string(shape.count) + " " +
         std::string(to_string(shape.dtype)) + " on " + std::to_string(ranks) + " ranks";
}

TEST_P(OnDevices, EveryCollectiveGivesTheBitsOfHostMemoryInAnyMixOfMemory) {
  for (int ranks = 1; ranks <= 4; ++ranks) {
    const auto n = static_cast<std::size_t>(ranks);
    std::mt19937_64 random(n);
    for (const Collective collective : kWithBuffers)
      for (const DType dtype : {DType::float32, DType::bfloat16, DType::int8})
        for (const std::size_t count : {std::size_t{0}, std::size_t{1}, n + 1, std::size_t{4099}}) {
          const Shape shape{collective, count, dtype, Op::avg, static_cast<int>(random() % n)};
          const auto want = expected(shape, ranks);
          const std::uint64_t seed = random();
          Communicator::run_threads(
              ranks,
              [&](Communicator& world) {
                const int me = world.rank();
                std::mt19937_64 dice(seed + static_cast<std::uint64_t>(me));
                for (int turn = 0; turn < 3; ++turn) {
                  // At first all on the device, where the ranks meet.
                  const auto kind = [&] { return turn == 0 ? MemoryKind::device : kMemoryKinds[dice() % 4]; };
                  const MemoryKind in = kind(), out = kind();
                  const Buffers buffers(shape, me, ranks, in, out, dice() % 2 == 0);
                  call(world, shape, buffers.in(), buffers.out());
                  ASSERT_TRUE(buffers.result() == want[static_cast<std::size_t>(me)]) << name_of(shape, ranks);
                }
              },
              GetParam());
        }
  }
}

// Several parts, the last of them shorter, of which some are fetched, some combined and some delivered at one time.
// Whole numbers, so that what must come out is known without another collective.
TEST_P(OnDevices, LongCallsAreCutAndGiveTheSameBits) {
  constexpr std::size_t kLong = (std::size_t{36} << 20) + 12;  // bytes of the whole message
  for (const int ranks : {2, 3})
    for (const Collective collective : kWithBuffers) {
      const bool rows = collective == Collective::all_gather || collective == Collective::reduce_scatter;
      const Shape shape{collective, kLong / 4 / (rows ? static_cast<std::size_t>(ranks) : 1), DType::int32, Op::sum, 1};
      Communicator::run_threads(
          ranks,
          [&](Communicator& world) {
            const int me = world.rank();
            // One rank's memory is the host's, so it is done by messages; in rows as the caller has them.
            const MemoryKind kind = me == 0 ? MemoryKind::host : MemoryKind::device;
            DeviceBuffer in(kind, numbers(me, input_elems(shape, ranks)));
            DeviceBuffer out(kind, output_elems(shape, ranks) * 4);
            if (collective == Collective::broadcast) out.write(numbers(me, shape.count));
            call(world, shape, in.data(), out.data());
            ASSERT_TRUE(out.read() == combined_numbers(shape, me, ranks)) << name_of(shape, ranks);
          },
          GetParam());
    }
}

// Each rank has some streams; a call goes on any of them, or on none, or is started and waited for later. What was put
// on a stream before fills the input, what is put there after reads the output.
TEST_P(OnDevices, ThousandRandomCollectivesOnRandomStreamsGiveTheBits) {
  constexpr int kCalls = 340, kRanks = 3;  // of each transport
  std::mt19937_64 random(4711);
  std::vector<Shape> shapes;
  std::vector<std::vector<std::vector<std::byte>>> want;
  for (int i = 0; i < kCalls; ++i) {
    const auto dtype = all_dtypes()[random() % all_dtypes().size()];
    const std::size_t most = i % 20 == 0 ? 100'000 : 2000;
    shapes.push_back({kWithBuffers[random() % 4], random() % most, dtype, all_ops()[random() % all_ops().size()],
                      static_cast<int>(random() % kRanks)});
    want.push_back(expected(shapes.back(), kRanks));
  }
  Communicator::run_threads(
      kRanks,
      [&](Communicator& world) {
        std::mt19937_64 dice(static_cast<std::uint64_t>(world.rank()) + 100);
        std::vector<cudaStream_t> streams(3);
        // Not such as the default stream waits for, which all ranks of this process share.
        for (cudaStream_t& stream : streams) cuda::check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
        struct Flying {
          std::unique_ptr<Buffers> buffers;
          std::unique_ptr<DeviceBuffer> copy;
          Work work;
          int number;
        };
        std::vector<Flying> flying;
        const auto land = [&] {
          for (cudaStream_t stream : streams) cuda::check(cudaStreamSynchronize(stream));
          for (Flying& each : flying) {
            each.work.wait();
            const auto& right = want[static_cast<std::size_t>(each.number)][static_cast<std::size_t>(world.rank())];
            const auto& shape = shapes[static_cast<std::size_t>(each.number)];
            ASSERT_TRUE(each.buffers->result() == right) << each.number << ": " << name_of(shape, kRanks);
            if (each.copy != nullptr) ASSERT_TRUE(each.copy->read() == right) << "behind it on the stream";
          }
          flying.clear();
        };
        for (int i = 0; i < kCalls; ++i) {
          const Shape& shape = shapes[static_cast<std::size_t>(i)];
          // Every third call finds all ranks on the device.
          const auto kind = [&] { return i % 3 == 0 ? MemoryKind::device : kMemoryKinds[dice() % 4]; };
          const MemoryKind in = kind(), out = kind();
          Flying next{std::make_unique<Buffers>(shape, world.rank(), kRanks, in, out, dice() % 2 == 0), nullptr, {}, i};
          const int way = static_cast<int>(dice() % 3);
          if (way == 0) {
            call(world, shape, next.buffers->in(), next.buffers->out());
          } else {
            cudaStream_t stream = streams[dice() % streams.size()];
            call(world, shape, next.buffers->in(), next.buffers->out(), {.stream = stream});
            const std::size_t bytes = output_elems(shape, kRanks) * size_of(shape.dtype);
            next.copy = std::make_unique<DeviceBuffer>(MemoryKind::device, bytes);
            if (out != MemoryKind::host && in != MemoryKind::host)
              cuda::check(cudaMemcpyAsync(next.copy->data(), next.buffers->out(), bytes, cudaMemcpyDefault, stream));
            else
              next.copy.reset();
            if (next.copy == nullptr) cuda::check(cudaStreamSynchronize(stream));
          }
          flying.push_back(std::move(next));
          if (flying.size() >= 8) land();
          if (testing::Test::HasFatalFailure()) return;
        }
        land();
        for (cudaStream_t stream : streams) cuda::check(cudaStreamDestroy(stream));
      },
      GetParam());
}

}  // namespace
}  // namespace tutti
