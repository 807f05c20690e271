#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>

#include "bench_limit.h"
#include "bench_measure.h"
#include "bench_options.h"
#include "bench_table.h"
#include "bench_values.h"
#include "command.h"
#include "host.h"
#include "reduce/reduce.h"
#include "tutti/communicator.h"

namespace tutti::tools {
namespace {

BenchOptions parsed(std::vector<std::string> words) {
  CLI::App app;
  BenchOptions options;
  describe(app, options);
  std::ranges::reverse(words);  // as CLI11 takes them
  app.parse(words);
  return options;
}

std::vector<std::size_t> counts_of(const std::vector<std::string>& words, int ranks) {
  return counts_to_measure(parsed(words), ranks);
}

using Counts = std::vector<std::size_t>;

TEST(BenchOptions, SizesTakePowersOf1024) {
  const BenchOptions options = parsed({"all_reduce", "--min", "2K", "--max", "1M", "--sizes", "0,8,100K,1G"});
  EXPECT_EQ(options.min_bytes, 2048u);
  EXPECT_EQ(options.max_bytes, 1u << 20);
  EXPECT_EQ(options.sizes, (std::vector<std::uint64_t>{0, 8, 102400, 1u << 30}));
}

TEST(BenchOptions, ASweepMultipliesByTheFactorAndLeavesZero) {
  EXPECT_EQ(counts_of({"all_reduce", "--min", "8", "--max", "512", "--factor", "8"}, 3), (Counts{2, 16, 128}));
  EXPECT_EQ(counts_of({"all_reduce", "--min", "0", "--max", "64", "--factor", "4"}, 3), (Counts{0, 1, 4, 16}));
  EXPECT_EQ(counts_of({"all_gather", "--min", "0", "--max", "64", "--factor", "4"}, 2), (Counts{0, 1, 4}));
}

TEST(BenchOptions, SizesAreRoundedDownToWholeElementsOfEveryRank) {
  EXPECT_EQ(counts_of({"all_reduce", "--sizes", "0,3,400015"}, 3), (Counts{0, 0, 100003}));
  EXPECT_EQ(counts_of({"reduce_scatter", "--dtype", "int8", "--sizes", "8,100"}, 3), (Counts{2, 33}));
  EXPECT_EQ(counts_of({"barrier"}, 3), (Counts{0}));
}

TEST(BenchOptions, WordsThatMeanNothingAreRefused) {
  EXPECT_THROW(parsed({"all_redcue"}), CLI::ParseError);
  EXPECT_THROW(parsed({}), CLI::ParseError);
  EXPECT_THROW(parsed({"all_reduce", "--dtype", "float31"}), CLI::ParseError);
  EXPECT_THROW(parsed({"all_reduce", "--sizes", "1.5X"}), CLI::ParseError);
  EXPECT_THROW(parsed({"all_reduce", "--factor", "1"}), CLI::ParseError);
  EXPECT_THROW(parsed({"all_reduce", "--rounds", "0"}), CLI::ParseError);
  EXPECT_THROW(parsed({"all_reduce", "--transport", "pigeon"}), CLI::ParseError);
}

TEST(BenchOptions, RingNeedsAnyOrderBeyondTwoRanks) {
  EXPECT_THROW(check(parsed({"all_reduce", "--algorithm", "ring"}), 3), UsageError);
  EXPECT_NO_THROW(check(parsed({"all_reduce", "--algorithm", "ring"}), 2));
  EXPECT_NO_THROW(check(parsed({"all_reduce", "--algorithm", "ring", "--order", "any"}), 3));
}

TEST(BenchOptions, WhatRanksCannotDoIsRefused) {
  EXPECT_THROW(check(parsed({"broadcast", "--algorithm", "two_shot"}), 2), UsageError);
  EXPECT_THROW(check(parsed({"broadcast", "--root", "2"}), 2), UsageError);
  EXPECT_THROW(check(parsed({"all_reduce"}), 0), UsageError);
  EXPECT_THROW(check(parsed({"all_reduce", "--transport", "inproc"}), 2), UsageError);
  EXPECT_THROW(check(parsed({"all_reduce", "--min", "2K", "--max", "1K"}), 2), UsageError);
  EXPECT_THROW(check(parsed({"all_reduce", "--sizes", "2T"}), 2), UsageError);
}

template <class T>
std::vector<T> inputs(DType dtype, int rank, std::size_t first, std::size_t count) {
  std::vector<T> values(count);
  write_input(reinterpret_cast<std::byte*>(values.data()), first, count, dtype, rank);
  return values;
}

TEST(BenchInput, AnElementDependsOnItsPlaceAndItsRankAlone) {
  const auto whole = inputs<float>(DType::float32, 1, 0, 3 * kPeriod);
  for (const std::size_t first : {std::size_t{1}, kPeriod - 2, kPeriod, 2 * kPeriod - 1}) {
    const auto part = inputs<float>(DType::float32, 1, first, kPeriod);
    EXPECT_EQ(std::memcmp(part.data(), whole.data() + first, kPeriod * sizeof(float)), 0) << first;
  }
  EXPECT_NE(inputs<float>(DType::float32, 2, 0, 100), inputs<float>(DType::float32, 1, 0, 100));
}

TEST(BenchInput, FloatsHaveBothSignsManyMagnitudesAndSomeAreDenormal) {
  const auto values = inputs<double>(DType::float64, 0, 0, kPeriod);
  EXPECT_TRUE(std::ranges::all_of(values, [](double x) { return std::isfinite(x) && std::abs(x) < 16384; }));
  const auto share = [&](auto is) { return static_cast<double>(std::ranges::count_if(values, is)) / kPeriod; };
  EXPECT_NEAR(share([](double x) { return std::signbit(x); }), 0.5, 0.02);
  EXPECT_NEAR(share([](double x) { return std::fpclassify(x) == FP_SUBNORMAL; }), 1.0 / 64, 0.005);
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
  for (const Algorithm algorithm : {Algorithm::one_shot, Algorithm::two_shot, Algorithm::sliced_tree,
                                    Algorithm::recursive_doubling, Algorithm::binomial_tree}) {
    const BenchOptions options = parsed(reducing(DType::float32, Op::sum));
    auto out = reduce_five(DType::float32, Op::sum, kCount, kCanonicalFive);
    Expectation expectation(options, 5);
    const CombiningOrder order = derive_order(options, algorithm, 5, kCount);
    EXPECT_EQ(expectation.count_wrong(out.data(), kCount, 3, order), 0u) << to_string(algorithm);
    out[4 * 77777] ^= std::byte{1};
    EXPECT_EQ(expectation.count_wrong(out.data(), kCount, 3, order), 1u) << to_string(algorithm);
  }
}

TEST(BenchExpectation, EveryTypeAndOperatorIsWorkedOut) {
  constexpr std::size_t kCount = 1000;
  for (const DType dtype : all_dtypes()) {
    for (const Op op : all_ops()) {
      const BenchOptions options = parsed(reducing(dtype, op));
      const auto out = reduce_five(dtype, op, kCount, kCanonicalFive);
      Expectation expectation(options, 5);
      EXPECT_EQ(expectation.count_wrong(out.data(), kCount, 0, derive_order(options, Algorithm::one_shot, 5, kCount)), 0u)
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

TEST(BenchTable, BandwidthsAreThoseOfNcclTests) {
  const BenchRow row{.bytes = 8'000'000, .us = 1000};
  EXPECT_DOUBLE_EQ(bandwidth(row, Collective::all_reduce, 4).algorithm, 8);
  EXPECT_DOUBLE_EQ(bandwidth(row, Collective::all_reduce, 4).bus, 12);
  EXPECT_DOUBLE_EQ(bandwidth(row, Collective::all_gather, 4).bus, 6);
  EXPECT_DOUBLE_EQ(bandwidth(row, Collective::reduce_scatter, 4).bus, 6);
  EXPECT_DOUBLE_EQ(bandwidth(row, Collective::broadcast, 4).bus, 8);
  EXPECT_DOUBLE_EQ(bandwidth(row, Collective::all_reduce, 1).bus, 0);
}

TEST(BenchTable, AJsonRowHasTheNamesThatScriptsRelyOn) {
  const BenchOptions options = parsed({"all_reduce", "--transport", "shm", "--order", "any"});
  BenchRow row{.algorithm = Algorithm::ring, .bytes = 1024, .us = 2.5, .limit_us = 2, .wrong = 0, .hash = 0xabc};
  const auto json = nlohmann::json::parse(json_row(row, options, 2));
  EXPECT_EQ(json, nlohmann::json::parse(R"({"collective":"all_reduce","transport":"shm","algorithm":"ring","order":"any",
    "ranks":2,"dtype":"float32","op":"sum","bytes":1024,"us":2.5,"algbw_gbs":0.4096,"busbw_gbs":0.4096,"limit_us":2.0,
    "wrong":0,"hash":"0000000000000abc"})"));
  row.limit_us.reset();
  row.wrong.reset();
  EXPECT_TRUE(nlohmann::json::parse(json_row(row, options, 2))["limit_us"].is_null());
  EXPECT_TRUE(nlohmann::json::parse(json_row(row, options, 2))["wrong"].is_null());
}

TEST(BenchTable, RowsAreAlignedAndFitTheScreen) {
  const BenchOptions options = parsed({"all_reduce", "--dtype", "bfloat16", "--in-place", "--symmetric", "--async"});
  const std::string head = table_head(options, 64);
  for (std::size_t begin = 0, end; (end = head.find('\n', begin)) != std::string::npos; begin = end + 1)
    EXPECT_LE(end - begin, 130u) << head.substr(begin, end - begin);
  const BenchRow small{.algorithm = Algorithm::ring, .bytes = 8, .us = 0.3, .wrong = 0};
  const BenchRow large{
      .algorithm = Algorithm::recursive_doubling, .bytes = 1u << 30, .us = 123456.7, .limit_us = 99.5, .wrong = 12345678};
  EXPECT_EQ(table_row(small, options, 2).size(), table_row(large, options, 2).size());
  EXPECT_LE(table_row(large, options, 2).size(), 111u);
}

TEST(Limit, EveryCollectiveHasOneOverSharedMemory) {
  for (const Collective collective : {Collective::all_reduce, Collective::reduce_scatter, Collective::all_gather,
                                      Collective::broadcast, Collective::barrier}) {
    for (const int ranks : {1, 2, 3}) {
      Limit limit(shm_loops(collective, ranks, 100003), usable_cores(), 1, 3);
      for (const std::size_t bytes : {1u, 100003u}) EXPECT_GE(limit.measure_us(bytes).value(), 0) << bytes;
      EXPECT_EQ(limit.measure_us(0).has_value(), collective == Collective::barrier);
    }
  }
}

TEST(Limit, EveryCollectiveHasOneOverTcpBetweenTwo) {
  for (const Collective collective : {Collective::all_reduce, Collective::all_gather, Collective::broadcast}) {
    Limit limit(tcp_loops(collective, 100003), usable_cores(), 1, 3);
    for (const std::size_t bytes : {8u, 100003u}) EXPECT_GT(limit.measure_us(bytes).value(), 0) << bytes;
    EXPECT_FALSE(limit.measure_us(0).has_value());
  }
}

TEST(Limit, IsNotGuessedWhereNoLoopMeasuresIt) {
  EXPECT_EQ(loops_for(parsed({"all_reduce", "--transport", "tcp", "-n", "3"}), 3, 4096), nullptr);
  EXPECT_EQ(loops_for(parsed({"all_reduce"}), 2, 4096), nullptr);
  EXPECT_NE(loops_for(parsed({"all_reduce", "--transport", "tcp", "-n", "2"}), 2, 4096), nullptr);
}

}  // namespace
}  // namespace tutti::tools
