// Messages above 4 GiB, of more than 2^32 elements: in no place is a size or an offset cut to 32 bits. The buffers are
// sparse (sparse_buffer.h).
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "runtime/any_call.h"
#include "runtime/ranks.h"
#include "runtime/shapes.h"
#include "runtime/sparse_buffer.h"

namespace tutti::internal {
namespace {

constexpr int kRanks = 2, kRoot = 1;
constexpr std::size_t kCount = (std::size_t{9} << 29) + 20'603;  // of one byte

// Element i of a rank's input is not 0 where a probe is.
std::uint8_t number(int rank, std::size_t i) {
  return static_cast<std::uint8_t>(mix(i * 2 + static_cast<std::size_t>(rank)) % 255 + 1);
}

// Where element j of the output comes from: an element of one rank's input, or of all.
struct Origin {
  int rank;  // -1: the sum over all
  std::size_t element;
};
Origin origin_of(Collective collective, int rank, std::size_t j) {
  const std::size_t own = static_cast<std::size_t>(rank) * kCount;
  switch (collective) {
    case Collective::all_reduce:
    case Collective::reduce: return {-1, j};
    case Collective::reduce_scatter: return {-1, own + j};
    case Collective::all_gather:
    case Collective::gather: return {static_cast<int>(j / kCount), j % kCount};
    case Collective::scatter: return {kRoot, own + j};
    case Collective::all_to_all: return {static_cast<int>(j / kCount), own + j % kCount};
    default: return {kRoot, j};
  }
}

void expect_right(Communicator& world, Collective collective) {
  const Shape shape{collective, kCount, DType::uint8, Op::sum, kRoot};
  const int me = world.rank();
  const std::size_t in_elems = input_elems(shape, kRanks, me), out_elems = output_elems(shape, kRanks, me);
  const SparseBuffer in(in_elems / kCount, kCount, true), out(out_elems / kCount, kCount, false);
  for (const auto& [begin, end] : in.probes())
    for (std::size_t i = begin; i < end; ++i) in.data()[i] = number(me, i);
  call(world, shape, reinterpret_cast<std::byte*>(in.data()), reinterpret_cast<std::byte*>(out.data()));
  for (const auto& [begin, end] : out.probes())
    for (std::size_t j = begin; j < end; ++j) {
      const auto [from, element] = origin_of(collective, me, j);
      const std::uint8_t right = from >= 0 ? number(from, element) : number(0, element) + number(1, element);
      ASSERT_EQ(out.data()[j], right) << to_string(collective) << ", rank " << me << ", element " << j;
    }
}

void expect_right(const std::vector<Collective>& collectives, const std::string& transport) {
  Communicator::run_threads(
      kRanks,
      [&](Communicator& world) {
        for (const Collective collective : collectives)
          if (!testing::Test::HasFatalFailure()) expect_right(world, collective);
      },
      transport);
}

TEST(HugeMessage, IsCombinedWhole) { expect_right({Collective::all_reduce}, "shm"); }

// A minute, by hand.
class ExhaustiveHugeMessage : public testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(ExhaustiveOver, ExhaustiveHugeMessage, testing::ValuesIn(kTransports),
                         [](const auto& it) { return it.param; });

TEST_P(ExhaustiveHugeMessage, ArrivesWholeByEveryCollective) {
  expect_right({Collective::all_reduce, Collective::reduce_scatter, Collective::all_gather, Collective::broadcast,
                Collective::reduce, Collective::gather, Collective::scatter, Collective::all_to_all},
               GetParam());
}

// A row of more than 4 GiB between rows that are short, beyond displacements of as much.
TEST(HugeMessage, ArrivesWholeInRowsOfDifferentLengths) {
  Communicator::run_threads(
      kRanks,
      [](Communicator& world) {
        const int me = world.rank();
        // Rank r gets counts[r] elements of each.
        const std::size_t counts[] = {7, kCount}, in_places[] = {kCount, 0}, out_places[] = {0, kCount};
        const std::size_t of_mine[] = {counts[me], counts[me]};
        const SparseBuffer in(2, kCount, true), out(2, kCount, false);
        for (const auto& [begin, end] : in.probes())
          for (std::size_t i = begin; i < end; ++i) in.data()[i] = number(me, i);
        world.all_to_all_v(in.data(), {counts, in_places}, out.data(), {of_mine, out_places}, DType::uint8);
        for (const auto& [begin, end] : out.probes())
          for (std::size_t j = begin; j < end; ++j) {
            const std::size_t row = j / kCount, i = j % kCount;
            if (i >= counts[me]) continue;
            ASSERT_EQ(out.data()[j], number(static_cast<int>(row), in_places[me] + i)) << "row " << row << ", " << i;
          }
      },
      "shm");
}

}  // namespace
}  // namespace tutti::internal
