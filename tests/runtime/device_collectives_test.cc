// Collectives over memory of every kind, rank by rank: the bits that host memory gives. Runs on a fake device, and
// wherever there is one on a real one.
#include <gtest/gtest.h>

#include <random>

#include "brief.h"
#include "runtime/device_calls.h"
#include "runtime/unequal_rows.h"

namespace tutti::internal {
namespace {

INSTANTIATE_TEST_SUITE_P(Collectives, OnDevices, testing::ValuesIn(kTransports),
                         [](const auto& it) { return it.param; });

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
  const auto sum_of = [&](std::size_t i, int first_ranks) {
    std::uint32_t total = 0;
    for (int r = 0; r < first_ranks; ++r) total += static_cast<std::uint32_t>(number(r, i));
    return static_cast<std::int32_t>(total);
  };
  const auto sum = [&](std::size_t i) { return sum_of(i, ranks); };
  const std::size_t own = static_cast<std::size_t>(me) * shape.count;
  return each(output_elems(shape, ranks, me), [&](std::size_t i) {
    switch (shape.collective) {
      case Collective::all_reduce:
      case Collective::reduce: return sum(i);
      case Collective::reduce_scatter: return sum(own + i);
      case Collective::scan: return sum_of(i, me + 1);
      case Collective::exclusive_scan: return sum_of(i, me);
      case Collective::all_gather:
      case Collective::gather: return number(static_cast<int>(i / shape.count), i % shape.count);
      case Collective::scatter: return number(shape.root, own + i);
      case Collective::transfer: return number(0, i);
      case Collective::all_to_all: return number(static_cast<int>(i / shape.count), own + i % shape.count);
      default: return number(shape.root, i);
    }
  });
}

TEST_P(OnDevices, EveryCollectiveGivesTheBitsOfHostMemoryInAnyMixOfMemory) {
  for (int ranks = 1; ranks <= 4; ++ranks) {
    const auto n = static_cast<std::size_t>(ranks);
    std::mt19937_64 random(n);
    for (const Collective collective : kWithBuffers)
      for (const DType dtype :
           kBrief ? std::vector{DType::bfloat16} : std::vector{DType::float32, DType::bfloat16, DType::int8})
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

// Rows of different lengths pass through the host, also of ranks whose buffers all lie on one device.
TEST_P(OnDevices, RowsOfDifferentLengthsComeWhereTheyShould) {
  for (int ranks = 1; ranks <= (kBrief ? 2 : 4); ++ranks)
    Communicator::run_threads(
        ranks,
        [&](Communicator& world) {
          const int me = world.rank();
          std::mt19937_64 random(static_cast<std::uint64_t>(ranks));  // the same on every rank
          for (const Collective collective : kWithRows)
            for (const DType dtype : {DType::bfloat16, DType::float32, DType::int8}) {
              const RowsShape shape = random_rows(collective, ranks, dtype, Op::avg, false, random);
              std::mt19937_64 own(random() + static_cast<std::uint64_t>(me));
              const std::size_t element = size_of(dtype);
              const PlacedRows in_rows = placed(input_rows(shape, me), own);
              const PlacedRows out_rows = placed(output_rows(shape, me), own);
              std::vector<std::byte> given(in_rows.extent * element), want(out_rows.extent * element, std::byte{0x5a});
              const auto put = [&](std::vector<std::byte>& to, const PlacedRows& places, const RowsOfBytes& rows) {
                for (std::size_t i = 0; i < rows.size(); ++i)
                  std::ranges::copy(rows[i],
                                    to.begin() + static_cast<std::ptrdiff_t>(places.displacements[i] * element));
              };
              const auto kind = [&] { return own() % 2 == 0 ? MemoryKind::device : kMemoryKinds[own() % 4]; };
              const DeviceBuffer out(kind(), want);
              put(given, in_rows, given_rows(shape, me));
              put(want, out_rows, expected_rows(shape, me));
              const DeviceBuffer in(kind(), given);
              run(world, shape, in.data(), in_rows, out.data(), out_rows, {});
              ASSERT_TRUE(out.read() == want) << name_of(shape) << ", rank " << me;
            }
        },
        GetParam());
}

// The rank with rows of one length waits for the others at the device, which the other one does not use.
TEST_P(OnDevices, RowsOfDifferentLengthsAreAnotherCallThanRowsOfOneLength) {
  const auto call = [](Communicator& world) {
    const DeviceBuffer in(MemoryKind::device, 16), out(MemoryKind::device, 32);
    const std::size_t counts[] = {4, 4};
    world.rank() == 0 ? world.all_gather(in.data(), out.data(), 4, DType::int32)
                      : world.all_gather_v(in.data(), out.data(), {counts}, DType::int32);
    world.barrier();
  };
  try {
    Communicator::run_threads(2, call, GetParam());
    ADD_FAILURE() << "nothing was noticed";
  } catch (const Error& error) {
    EXPECT_EQ(error.code, ErrorCode::mismatch) << error.what();
  }
}

// Under sanitizers, where all of them take minutes, some.
#ifdef TUTTI_BRIEF
const std::vector<std::string> kLongTransports{"shm"};
constexpr int kRanksOfLongCalls[] = {2};
constexpr Collective kLongCalls[] = {Collective::reduce_scatter};
#else
const std::vector<std::string>& kLongTransports = kTransports;
constexpr int kRanksOfLongCalls[] = {2, 3};
const auto& kLongCalls = kWithBuffers;
#endif
class LongOnDevices : public OnDevices {};
INSTANTIATE_TEST_SUITE_P(Collectives, LongOnDevices, testing::ValuesIn(kLongTransports),
                         [](const auto& it) { return it.param; });

// Several parts, the last of them shorter, of which some are fetched, some combined and some delivered at one time.
// Whole numbers, so that what must come out is known without another collective.
TEST_P(LongOnDevices, LongCallsAreCutAndGiveTheSameBits) {
  constexpr std::size_t kLong = (std::size_t{36} << 20) + 12;  // bytes of the whole message
  for (const int ranks : kRanksOfLongCalls)
    for (const Collective collective : kLongCalls) {
      const Shape one{collective, 1, DType::int32, Op::sum, 1};
      const std::size_t rows = std::max(input_elems(one, ranks), output_elems(one, ranks));
      const Shape shape{collective, kLong / 4 / rows, DType::int32, Op::sum, 1};
      Communicator::run_threads(
          ranks,
          [&](Communicator& world) {
            const int me = world.rank();
            // One rank's memory is the host's, so it is done by messages; in rows as the caller has them.
            const MemoryKind kind = me == 0 ? MemoryKind::host : MemoryKind::device;
            DeviceBuffer in(kind, numbers(me, input_elems(shape, ranks, me)));
            DeviceBuffer out(kind, output_elems(shape, ranks, me) * 4);
            call(world, shape, in.data(), out.data());
            ASSERT_TRUE(out.read() == combined_numbers(shape, me, ranks)) << name_of(shape, ranks);
          },
          GetParam());
    }
}

}  // namespace
}  // namespace tutti::internal
