// The command line of `tutti bench`: options, limits, table and exit status.
#include "command.h"

#include <gtest/gtest.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <csignal>
#include <limits>
#include <nlohmann/json.hpp>
#include <sstream>

#include "bench/options.h"
#include "bench/row_limit.h"
#include "bench/table.h"
#include "machine/host.h"
#include "tools/bench/parsed.h"
#include "types/collective.h"

namespace tutti::internal::tools {
namespace {

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

TEST(BenchOptions, ASweepBeginsWithAnElementOfEveryRankUnlessItBeginsWithZero) {
  EXPECT_EQ(counts_of({"all_gather", "--min", "8", "--max", "640", "--factor", "8"}, 20), (Counts{1, 8}));
  EXPECT_EQ(counts_of({"all_gather", "--min", "8", "--max", "64", "--factor", "8"}, 20), (Counts{1}));
}

TEST(BenchOptions, SizesAreRoundedDownToWholeElementsOfEveryRank) {
  EXPECT_EQ(counts_of({"all_reduce", "--sizes", "0,3,400015"}, 3), (Counts{0, 0, 100003}));
  EXPECT_EQ(counts_of({"reduce_scatter", "--dtype", "int8", "--sizes", "8,100"}, 3), (Counts{2, 33}));
  EXPECT_EQ(counts_of({"barrier"}, 3), (Counts{0}));
}

TEST(BenchOptions, WordsThatMeanNothingAreRefused) {
  EXPECT_THROW(parsed({"all_redcue"}), NotUnderstood);
  EXPECT_THROW(parsed({}), NotUnderstood);
  EXPECT_THROW(parsed({"all_reduce", "--dtype", "float31"}), NotUnderstood);
  EXPECT_THROW(parsed({"all_reduce", "--sizes", "1.5X"}), NotUnderstood);
  EXPECT_THROW(parsed({"all_reduce", "--factor", "1"}), NotUnderstood);
  EXPECT_THROW(parsed({"all_reduce", "--rounds", "0"}), NotUnderstood);
  EXPECT_THROW(parsed({"all_reduce", "--transport", "pigeon"}), NotUnderstood);
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

TEST(BenchCommand, RefusesBeforeItStartsAnyRank) {
  EXPECT_EQ(status_of({"all_reduce", "-n", "3", "--algorithm", "ring"}), 2);
  EXPECT_EQ(status_of({"all_reduce", "-n", "2", "--order", "random"}), 2);
  EXPECT_EQ(status_of({"all_reduce", "-n", "0"}), 2);
  EXPECT_EQ(status_of({"all_reduce", "-n", "2", "--device", "cuda", "--symmetric"}), 2);
}

TEST(BenchCommand, MeasuresASweepWithItsLimit) {
  testing::internal::CaptureStdout();
  const int status = status_of({"all_reduce", "-n", "2", "--transport", "inproc", "--sizes", "8,4K", "--iterations",
                                "2", "--rounds", "1", "--json"});
  std::istringstream lines(testing::internal::GetCapturedStdout());
  EXPECT_EQ(status, 0);
  int rows = 0;
  for (std::string line; std::getline(lines, line); ++rows) {
    const auto row = nlohmann::json::parse(line);
    EXPECT_EQ(row["bytes"], rows == 0 ? 8 : 4096);
    EXPECT_EQ(row["wrong"], 0);
    EXPECT_GT(row["limit_us"], 0.0);
  }
  EXPECT_EQ(rows, 2);
}

// A warm-up and a round, of the row and of its limit. A first trial that is disturbed makes the rounds shorter: so it
// may try again.
TEST(BenchCommand, ARoundTakesAboutAsLongAsIsAsked) {
  constexpr std::chrono::milliseconds kAtLeast{150};
  std::chrono::steady_clock::duration took{};
  for (int tries = 0; tries < 3 && took < kAtLeast; ++tries) {
    testing::internal::CaptureStdout();
    const auto start = std::chrono::steady_clock::now();
    EXPECT_EQ(status_of({"all_reduce", "-n", "2", "--transport", "inproc", "--sizes", "64", "--rounds", "1",
                         "--round-ms", "100"}),
              0);
    took = std::chrono::steady_clock::now() - start;
    testing::internal::GetCapturedStdout();
  }
  EXPECT_GE(took, kAtLeast);
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
  BenchRow row{
      .algorithm = Algorithm::ring, .bytes = 1024, .us = 2.5, .limit_us = 2, .wrong = 0, .hash = 0xabc, .table = 0xdef};
  const auto json = nlohmann::json::parse(json_row(row, options, 2));
  EXPECT_EQ(json, nlohmann::json::parse(
                      R"({"collective":"all_reduce","transport":"shm","device":"cpu","algorithm":"ring","order":"any",
    "ranks":2,"dtype":"float32","op":"sum","bytes":1024,"us":2.5,"algbw_gbs":0.4096,"busbw_gbs":0.4096,"limit_us":2.0,
    "wrong":0,"hash":"0000000000000abc",
    "table":"0000000000000def"})"));
  row.limit_us.reset();
  row.wrong.reset();
  EXPECT_TRUE(nlohmann::json::parse(json_row(row, options, 2))["limit_us"].is_null());
  EXPECT_TRUE(nlohmann::json::parse(json_row(row, options, 2))["wrong"].is_null());
}

TEST(BenchTable, RowsAreAlignedAndFitTheScreen) {
  const BenchOptions options = parsed({"all_reduce", "--dtype", "bfloat16", "--in-place", "--symmetric", "--async"});
  const std::string head = table_head(options, 64, 1024);
  for (std::size_t begin = 0, end; (end = head.find('\n', begin)) != std::string::npos; begin = end + 1)
    EXPECT_LE(end - begin, 130u) << head.substr(begin, end - begin);
  const BenchRow small{.algorithm = Algorithm::ring, .bytes = 8, .us = 0.3, .wrong = 0};
  const BenchRow large{.algorithm = Algorithm::recursive_doubling,
                       .bytes = 1u << 30,
                       .us = 123456.7,
                       .limit_us = 99.5,
                       .wrong = 12345678};
  EXPECT_EQ(table_row(small, options, 2).size(), table_row(large, options, 2).size());
  EXPECT_LE(table_row(large, options, 2).size(), 111u);
}

TEST(Limit, EveryCollectiveHasOneOverSharedMemory) {
  for (const CollectiveTraits& traits : kCollectives) {
    const Collective collective = traits.collective;
    for (const int ranks : {1, 2, 3}) {
      Limit limit(shm_loops(collective, ranks, 100003), places_for(3), 1, 3);
      for (const std::size_t bytes : {1u, 100003u}) EXPECT_GE(limit.measure_us(bytes).value(), 0) << bytes;
      EXPECT_EQ(limit.measure_us(0).has_value(), collective == Collective::barrier);
    }
  }
}

TEST(Limit, EveryCollectiveHasOneOfOwnBuffers) {
  for (const CollectiveTraits& traits : kCollectives) {
    if (!traits.has_bytes() || traits.is_scan()) continue;
    for (const int ranks : {1, 2, 3, 5}) {
      Limit limit(own_loops(traits.collective, ranks, 1'000'003), places_for(5), 1, 3);
      for (const std::size_t bytes : {1u, 100u, 16'384u, 100'003u, 1'000'003u})
        EXPECT_GE(limit.measure_us(bytes).value(), 0) << to_string(traits.collective) << ", " << bytes;
      EXPECT_FALSE(limit.measure_us(0).has_value());
    }
  }
}

// Whether processes that are made alike may read each other's memory.
bool siblings_may_read() {
  static char byte = 0;
  const pid_t first = fork();
  if (first < 0) return false;
  if (first == 0)
    while (true) pause();
  const pid_t second = fork();
  if (second == 0) {
    char seen = 0;
    const iovec here{&seen, 1}, there{&byte, 1};
    _exit(process_vm_readv(first, &here, 1, &there, 1, 0) == 1 ? 0 : 1);
  }
  int status = 1;
  if (second > 0) waitpid(second, &status, 0);
  kill(first, SIGKILL);
  waitpid(first, nullptr, 0);
  return status == 0;
}

TEST(Limit, WhatOnlyMovesHasOneByReads) {
  const bool may_read = siblings_may_read();
  for (const CollectiveTraits& traits : kCollectives) {
    if (!traits.has_bytes() || traits.combines()) continue;
    for (const int ranks : {1, 2, 3, 5}) {
      Limit limit(read_loops(traits.collective, ranks, 1'000'003), places_for(5), 1, 3);
      for (const std::size_t bytes : {1u, 100u, 1'000'003u})
        EXPECT_EQ(std::isfinite(limit.measure_us(bytes).value()), may_read || ranks == 1)
            << to_string(traits.collective) << ", " << bytes;
      EXPECT_FALSE(limit.measure_us(0).has_value());
    }
  }
}

TEST(Limit, OfTwoIsThatOfTheQuicker) {
  struct Loops : LimitLoops {
    explicit Loops(double us) : us(us) {}
    int processes() const override { return 2; }
    bool measures(std::size_t) const override { return true; }
    std::size_t calls_for(std::size_t) const override { return 1; }
    double round(int, std::size_t, std::size_t) override { return us; }
    double us;
  };
  const auto of = [](double first, double second) {
    return quicker_of(std::make_unique<Loops>(first), std::make_unique<Loops>(second))->round(0, 8, 1);
  };
  EXPECT_EQ(of(2, 3), 2);
  EXPECT_EQ(of(std::numeric_limits<double>::infinity(), 3), 3);
}

TEST(Limit, EveryCollectiveHasOneOverTcpBetweenTwo) {
  for (const Collective collective :
       {Collective::all_reduce, Collective::all_gather, Collective::broadcast, Collective::all_to_all}) {
    Limit limit(tcp_loops(collective, 100003), places_for(3), 1, 3);
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
}  // namespace tutti::internal::tools
