// `tutti bench --device cuda` where there are several GPUs, none, or no driver; and what its limits count.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "bench/row_limit_gpu.h"
#include "brief.h"
#include "tools/shell.h"
#include "tutti/types.h"

namespace tutti::internal::tools {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

GpuTraffic traffic(Collective collective, int rank) {
  BenchOptions options;
  options.collective = collective;
  options.root = 1;
  return gpu_traffic(options, rank, 4, 4000);
}

TEST(GpuTraffic, IsEachInputReadOnceAndEachOutputWrittenOnce) {
  for (const int rank : {0, 1}) {
    EXPECT_EQ(traffic(Collective::all_reduce, rank), (GpuTraffic{4000, 4000}));
    EXPECT_EQ(traffic(Collective::reduce_scatter, rank), (GpuTraffic{4000, 1000}));
    EXPECT_EQ(traffic(Collective::all_gather, rank), (GpuTraffic{1000, 4000}));
    EXPECT_EQ(traffic(Collective::barrier, rank), (GpuTraffic{}));
  }
  EXPECT_EQ(traffic(Collective::broadcast, 0), (GpuTraffic{0, 4000}));
  EXPECT_EQ(traffic(Collective::broadcast, 1), (GpuTraffic{4000, 0})) << "the root";
}

TEST(BenchReduceOnFakeGpu, GivesTheBitsOfTheCpu) {
  for (const DType dtype : all_dtypes()) {
    if (kBrief && dtype != DType::float32 && dtype != DType::bfloat16) continue;
    const Result run = shell(
        "$TUTTI bench reduction --device cuda --sizes 0,8,10003 --iterations 1 --rounds 1 --json -n 9 "
        "--dtype " +
        std::string(to_string(dtype)));
    EXPECT_EQ(run.status, 0) << run.err;
    std::istringstream lines(run.out);
    int rows = 0;
    for (std::string line; std::getline(lines, line); ++rows) {
      const auto row = nlohmann::json::parse(line);
      EXPECT_EQ(row["gpu"], "fake GPU 0");
      EXPECT_EQ(row["wrong"], 0);
    }
    EXPECT_EQ(rows, 3);
  }
}

TEST(BenchOnFakeGpu, SaysWhatDidIt) {
  const auto way = [](const std::string& words) {
    const Result run =
        shell("$TUTTI bench all_reduce -n 2 --device cuda --sizes 8 --iterations 1 --rounds 1 --json " + words);
    EXPECT_EQ(run.status, 0) << run.err;
    return nlohmann::json::parse(run.out)["algorithm"];
  };
  EXPECT_EQ(way("--transport inproc"), "one kernel");
  EXPECT_EQ(way("--transport shm"), "one_shot");
}

TEST(BenchWithoutGpu, OneLineSaysWhyAndTheStatusIsOne) {
  for (const char* gpus : {"-1", "0"}) {
    for (const char* words : {"all_reduce -n 2", "all_reduce -n 2 --transport inproc", "barrier", "reduction"}) {
      const Result run =
          shell(std::string("export TUTTI_FAKE_GPUS=") + gpus + "; $TUTTI bench " + words + " --device cuda");
      EXPECT_EQ(run.status, 1) << gpus << ": " << words;
      EXPECT_EQ(run.out, "");
      EXPECT_THAT(run.err, StartsWith("tutti bench: --device cuda: "));
      EXPECT_EQ(run.err.find('\n'), run.err.size() - 1) << run.err;
      EXPECT_THAT(run.err, HasSubstr(gpus[0] == '0' ? "cudaErrorNoDevice" : "driver"));
    }
  }
}

TEST(BenchWithoutGpu, WhatCannotBeIsRefusedAllTheSame) {
  const Result run = shell("TUTTI_FAKE_GPUS=-1 $TUTTI bench all_reduce -n 2 --device cuda --symmetric");
  EXPECT_EQ(run.status, 2);
  EXPECT_THAT(run.err, StartsWith("tutti bench: --symmetric and --adopted are memory of the host"));
}

TEST(BenchOnSeveralGpus, ProcessesTakeThemInTurnAndThreadsShareTheFirst) {
  const std::string bench =
      "TUTTI_FAKE_GPUS=2 $TUTTI bench all_reduce --device cuda --sizes 100008 --rounds 1 "
      "--iterations 1 -n 3 --transport ";
  const Result processes = shell(bench + "shm"), threads = shell(bench + "inproc");
  EXPECT_EQ(processes.status, 0) << processes.err;
  EXPECT_EQ(threads.status, 0) << threads.err;
  EXPECT_THAT(processes.out, HasSubstr("# the buffers of rank r of a host lie on GPU r mod 2; rank 0's: GPU 0, "));
  EXPECT_THAT(threads.out, HasSubstr("# all buffers lie on GPU 0, "));
  for (const Result& run : {processes, threads}) EXPECT_THAT(run.out, HasSubstr("# 1 size, 0 wrong\n"));
}

TEST(BenchOnGpuOfALauncher, ARankFindsItsOwn) {
  const Result run =
      shell("TUTTI_FAKE_GPUS=2 $TUTTI run -n 2 $TUTTI bench broadcast --device cuda --sizes 100008 --rounds 1 --json");
  EXPECT_EQ(run.status, 0) << run.err;
  const auto row = nlohmann::json::parse(run.out);
  EXPECT_EQ(row["wrong"], 0);
  EXPECT_GT(row["limit_us"], 0.0) << "the copies alone";
}

}  // namespace
}  // namespace tutti::internal::tools
