// The numbers of `tutti bench`: what it sends, what it expects, and that it measures what is right.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>

#include "bench/measure.h"
#include "bench/options.h"
#include "bench/table.h"
#include "bench/values.h"
#include "collectives/catalogue.h"
#include "reduce/reduce.h"
#include "tools/bench/parsed.h"
#include "tutti/communicator.h"
#include "types/kinds.h"

namespace tutti::internal::tools {
namespace {

template <class T>
std::vector<T> inputs(DType dtype, int rank, std::size_t first, std::size_t count) {
  std::vector<T> values(count);
  write_input(reinterpret_cast<std::byte*>(values.data()), first, count, dtype, rank);
  return values;
}

TEST(BenchInput, AnElementDependsOnItsPlaceAndItsRankAlone) {
  const auto whole = inputs<std::uint32_t>(DType::float32, 1, 0, 3 * kPeriod);  // the bits of floats
  for (const std::size_t first : {std::size_t{1}, kPeriod - 2, kPeriod, 2 * kPeriod - 1}) {
    const auto part = inputs<std::uint32_t>(DType::float32, 1, first, kPeriod);
    EXPECT_TRUE(std::equal(part.begin(), part.end(), whole.begin() + static_cast<std::ptrdiff_t>(first))) << first;
  }
  EXPECT_NE(inputs<float>(DType::float32, 2, 0, 100), inputs<float>(DType::float32, 1, 0, 100));
}

TEST(BenchInput, FloatsHaveBothSignsManyMagnitudesAndSomeAreDenormal) {
  const auto values = inputs<double>(DType::float64, 0, 0, kPeriod);
  EXPECT_TRUE(std::ranges::all_of(values, [](double x) { return std::isfinite(x) && std::abs(x) < 16384; }));
  const auto share = [&](auto is) { return static_cast<double>(std::ranges::count_if(values, is)) / kPeriod; };
  EXPECT_NEAR(share([](double x) { return std::signbit(x); }), 0.5, 0.02);
  EXPECT_NEAR(share([](double x) { return std::fpclassify(x) == FP_SUBNORMAL; }), 1.0 / 4096, 0.0002);
  EXPECT_GT(share([](double x) { return std::abs(x) >= 4; }), 0.05);
  EXPECT_GT(share([](double x) { return std::abs(x) < 1.0 / 256 && std::isnormal(x); }), 0.05);
}

std::vector<std::string> reducing(DType dtype, Op op) {
  return {"all_reduce", "--dtype", std::string(to_string(dtype)), "--op", std::string(to_string(op)), "--order", "any"};
}

// The canonical tree over 5 ranks, by the vectorised reduction, along joins written out by hand: ((01)(23))4.
std::vector<std::byte> reduce_five(DType dtype, Op op, std::size_t count, std::array<std::uint8_t, 5> joins) {
  std::vector<std::vector<std::byte>> in(5);
  std::vector<ReduceSource> sources;
  for (int rank = 0; rank < 5; ++rank) {
    in[rank].resize(count * size_of(dtype));
    write_input(in[rank].data(), 0, count, dtype, rank);
    sources.push_back({.data = in[rank].data(), .joins = joins[rank]});
  }
  std::vector<std::byte> out(count * size_of(dtype));
  const ReduceTarget target{.data = out.data()};
  const FloatEnvironment ieee;
  reduce({.dtype = dtype, .op = op, .finish = true, .leaves = 5}, sources, {&target, 1}, count);
  return out;
}

constexpr std::array<std::uint8_t, 5> kCanonicalFive{0, 1, 0, 2, 1};
constexpr std::array<std::uint8_t, 5> kLeftToRight{0, 1, 1, 1, 1};

TEST(BenchExpectation, CanonicalAlgorithmsAllGiveTheTreeOfTheDesign) {
  constexpr std::size_t kCount = 100003;
  for (const AlgorithmEntry& entry : catalogue()) {
    if (entry.collective != Collective::all_reduce || !entry.canonical) continue;
    const BenchOptions options = parsed(reducing(DType::float32, Op::sum));
    auto out = reduce_five(DType::float32, Op::sum, kCount, kCanonicalFive);
    Expectation expectation(options, 5);
    const CombiningOrder order = derive_order(options, entry.algorithm, 5, kCount);
    EXPECT_EQ(expectation.count_wrong(out.data(), kCount, 3, order), 0u) << name_of(entry);
    out[4 * 77777] ^= std::byte{1};
    EXPECT_EQ(expectation.count_wrong(out.data(), kCount, 3, order), 1u) << name_of(entry);
  }
}

TEST(BenchExpectation, EveryTypeAndOperatorIsWorkedOut) {
  constexpr std::size_t kCount = 1000;
  for (const DType dtype : all_dtypes()) {
    for (const Op op : ops_of(dtype)) {
      const BenchOptions options = parsed(reducing(dtype, op));
      const auto out = reduce_five(dtype, op, kCount, kCanonicalFive);
      Expectation expectation(options, 5);
      EXPECT_EQ(expectation.count_wrong(out.data(), kCount, 0, derive_order(options, Algorithm::one_shot, 5, kCount)),
                0u)
          << to_string(dtype) << " " << to_string(op);
    }
  }
}

TEST(BenchExpectation, AnotherOrderOfAddingShows) {
  constexpr std::size_t kCount = 1000;
  for (const DType dtype : {DType::float32, DType::float64, DType::float16, DType::bfloat16}) {
    const BenchOptions options = parsed(reducing(dtype, Op::sum));
    const auto out = reduce_five(dtype, Op::sum, kCount, kLeftToRight);
    Expectation expectation(options, 5);
    const CombiningOrder order = derive_order(options, Algorithm::two_shot, 5, kCount);
    const std::uint64_t wrong = expectation.count_wrong(out.data(), kCount, 0, order);
    // Accumulation in float32 hides most differences from the 16-bit types.
    EXPECT_GT(wrong, size_of(dtype) == 2 ? 0 : kCount / 10) << to_string(dtype);
  }
}

TEST(BenchExpectation, AChunkInTheWrongPlaceShows) {
  const BenchOptions options = parsed({"broadcast", "--dtype", "int32"});
  constexpr std::size_t kCount = 2 * kPeriod;
  std::vector<std::byte> out(kCount * 4);
  write_input(out.data(), 0, kCount, DType::int32, 0);
  Expectation expectation(options, 2);
  EXPECT_EQ(expectation.count_wrong(out.data(), kCount, 1, {}), 0u);
  std::memmove(out.data() + 4 * 4096, out.data(), 4 * 512);
  EXPECT_EQ(expectation.count_wrong(out.data(), kCount, 1, {}), 512u);
}

// What measuring `count` elements gives over `ranks` threads of this process.
BenchRow measured(std::vector<std::string> words, int ranks, std::size_t count,
                  const std::string& transport = "inproc") {
  const std::string n = std::to_string(ranks);
  words.insert(words.end(), {"-n", n, "--rounds", "1", "--iterations", "2"});
  const BenchOptions options = parsed(words);
  std::vector<BenchRow> rows(static_cast<std::size_t>(ranks));
  const auto body = [&](Communicator& world) {
    Bench bench(world, options, count + 1);
    rows[static_cast<std::size_t>(world.rank())] = bench.measure(count);
  };
  Communicator::run_threads(ranks, body, transport);
  for (const BenchRow& row : rows) {
    EXPECT_EQ(row.hash, rows.front().hash);
    EXPECT_EQ(row.wrong, rows.front().wrong);
  }
  return rows.front();
}

TEST(Bench, EveryCollectiveIsRightInEveryForm) {
  for (const std::string collective : {"all_reduce", "reduce_scatter", "all_gather", "broadcast", "all_to_all"}) {
    for (const std::size_t count : {0u, 1u, 10007u}) {
      const BenchRow plain = measured({collective}, 3, count);
      EXPECT_EQ(plain.wrong, 0u) << collective << " " << count;
      const std::vector<std::vector<std::string>> forms{{"--in-place"},
                                                        {"--async"},
                                                        {"--touch"},
                                                        {"--symmetric"},
                                                        {"--in-place", "--async", "--symmetric", "--touch"}};
      for (const auto& form : forms) {
        std::vector<std::string> words{collective};
        words.insert(words.end(), form.begin(), form.end());
        const BenchRow row = measured(words, 3, count);
        EXPECT_EQ(row.wrong, 0u) << collective << " " << count << " " << form.front();
        EXPECT_EQ(row.hash, plain.hash) << collective << " " << count << " " << form.front();
      }
    }
  }
  EXPECT_EQ(measured({"barrier"}, 3, 0).wrong, 0u);
  EXPECT_EQ(measured({"broadcast", "--root", "2"}, 3, 1000).wrong, 0u);
}

TEST(Bench, CanonicalAlgorithmsShareOneHashOverEveryTransport) {
  const BenchRow first = measured({"all_reduce"}, 3, 10007);
  for (const std::string transport : {"inproc", "shm", "tcp"}) {
    for (const std::string algorithm : {"one_shot", "two_shot", "sliced_tree", "recursive_doubling", "binomial_tree"}) {
      const BenchRow row = measured({"all_reduce", "--algorithm", algorithm}, 3, 10007, transport);
      EXPECT_EQ(row.wrong, 0u) << algorithm << " " << transport;
      EXPECT_EQ(row.hash, first.hash) << algorithm << " " << transport;
    }
  }
}

TEST(Bench, RingIsRightInAnOrderOfItsOwn) {
  const BenchRow ring = measured({"all_reduce", "--algorithm", "ring", "--order", "any"}, 3, 10007);
  EXPECT_EQ(ring.wrong, 0u);
  EXPECT_NE(ring.hash, measured({"all_reduce"}, 3, 10007).hash);
}

}  // namespace
}  // namespace tutti::internal::tools
