// `tutti bench reduction`: what it measures, what it counts as wrong, what it prints and what it refuses.
#include "bench/reduce.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <sstream>

#include "bench/values.h"
#include "brief.h"
#include "command.h"
#include "tools/shell.h"
#include "types/kinds.h"

namespace tutti::internal::tools {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

const cuda::Device kGpu{1, "NVIDIA H100 80GB HBM3", 9, 0, 132, std::size_t{80} << 30, "0000:3b:00.0"};

BenchOptions options_for(DType dtype, Op op, int sources) {
  BenchOptions options;
  options.is_reduce = true;
  options.dtype = dtype;
  options.op = op;
  options.ranks = sources;
  options.iterations = 1;
  options.rounds = 1;
  return options;
}

// Everything as the CPU does it, but for the times, which are made up, and for one bit of the result.
class MadeUp final : public ReduceSubject {
 public:
  MadeUp(const BenchOptions& options, std::size_t count) : host_(host_subject(options, count)) {}
  double reduce_us(std::size_t count, std::size_t calls) override {
    host_->reduce_us(count, 1);
    asked += 'r';
    calls_of_last = calls;
    return us[reductions_++ % us.size()];
  }
  double copy_us(std::size_t bytes, std::size_t) override {
    asked += 'c';
    copied = bytes;
    return 7;
  }
  void spoil(std::size_t count) override { host_->spoil(count); }
  void read(std::byte* to, std::size_t first, std::size_t count) override {
    host_->read(to, first, count);
    for (const std::size_t element : wrong)
      if (element >= first && element < first + count) to[(element - first) * 4 + 3] ^= std::byte{0x80};
  }

  std::vector<double> us{4};
  std::vector<std::size_t> wrong;
  std::string asked;
  std::size_t copied = 0, calls_of_last = 0;

 private:
  std::unique_ptr<ReduceSubject> host_;
  std::size_t reductions_ = 0;
};

TEST(BenchReduce, TheCpuIsRightForEveryTypeOperatorAndNumberOfSources) {
  for (const DType dtype : all_dtypes()) {
    for (const Op op : ops_of(dtype)) {
      for (const int sources : kBrief ? std::vector{1, 3, 9} : std::vector{1, 2, 3, 5, 8, 9, 33}) {
        const BenchOptions options = options_for(dtype, op, sources);
        EXPECT_EQ(measure(*host_subject(options, 5001), options, 5001).wrong, 0u)
            << to_string(dtype) << " " << to_string(op) << " " << sources;
      }
    }
  }
}

TEST(BenchReduce, SourcesAreJoinedAlongTheCanonicalTree) {
  const auto joins_of = [](int sources) {
    const BenchOptions options = options_for(DType::float32, Op::sum, sources);
    const ReduceMemory memory(options, 8);
    std::vector<std::byte> bytes(memory.bytes);
    std::vector<int> joins;
    for (const ReduceSource& each : ReduceCall(options, memory, bytes.data()).sources) joins.push_back(each.joins);
    return joins;
  };
  EXPECT_THAT(joins_of(1), ElementsAre(0));
  EXPECT_THAT(joins_of(2), ElementsAre(0, 1));
  EXPECT_THAT(joins_of(5), ElementsAre(0, 1, 0, 2, 1));
  EXPECT_THAT(joins_of(7), ElementsAre(0, 1, 0, 2, 0, 1, 2));
}

TEST(BenchReduce, AnElementOfWhichOneBitDiffersIsWrong) {
  const BenchOptions options = options_for(DType::float32, Op::sum, 3);
  const std::size_t count = 2 * kPeriod + 10;  // it compares a period at a time
  MadeUp subject(options, count);
  EXPECT_EQ(measure(subject, options, count).wrong, 0u);
  subject.wrong = {0, kPeriod - 1, kPeriod, count - 1};
  EXPECT_EQ(measure(subject, options, count).wrong, 4u);
}

TEST(BenchReduce, AResultThatIsNotWrittenIsWrong) {
  class Idle final : public ReduceSubject {
   public:
    explicit Idle(const BenchOptions& options) : host_(host_subject(options, 100)) { host_->reduce_us(100, 1); }
    double reduce_us(std::size_t, std::size_t) override { return 1; }
    double copy_us(std::size_t, std::size_t) override { return 1; }
    void spoil(std::size_t count) override { host_->spoil(count); }
    void read(std::byte* to, std::size_t first, std::size_t count) override { host_->read(to, first, count); }

   private:
    std::unique_ptr<ReduceSubject> host_;
  };
  const BenchOptions options = options_for(DType::float64, Op::sum, 2);
  Idle idle(options);
  EXPECT_EQ(measure(idle, options, 100).wrong, 100u) << "the right one was there before";
}

TEST(BenchReduce, RoundsOfBothGoInTurnAndTheirMediansCount) {
  BenchOptions options = options_for(DType::float32, Op::sum, 4);
  options.rounds = 3;
  options.iterations = 17;
  MadeUp subject(options, 1000);
  subject.us = {1, 100, 2, 5};
  const ReduceRow row = measure(subject, options, 1000);
  EXPECT_EQ(subject.asked, "rrcrcrc") << "the first is checked";
  EXPECT_EQ(row.us, 5);
  EXPECT_EQ(row.limit_us, 7);
  EXPECT_EQ(row.bytes, 4000u);
  EXPECT_EQ(subject.copied, 10000u) << "half of 5 times 4000: each is read and written";
  EXPECT_EQ(subject.calls_of_last, 17u);
}

TEST(BenchReduce, ARoundHasAsManyCallsAsFitItsTime) {
  BenchOptions options = options_for(DType::float32, Op::sum, 2);
  options.iterations = 0;
  MadeUp subject(options, 10);
  for (const auto& [us, calls] : {std::pair(0.0, 1'000'000u), std::pair(50.0, 1000u), std::pair(1e9, 3u)}) {
    subject.us = {us};
    measure(subject, options, 10);
    EXPECT_EQ(subject.calls_of_last, calls) << us;
  }
}

TEST(BenchReduce, AMessageOfNoBytesHasNoLimit) {
  const BenchOptions options = options_for(DType::int8, Op::max, 2);
  const ReduceRow row = measure(*host_subject(options, 0), options, 0);
  EXPECT_FALSE(row.limit_us.has_value());
  EXPECT_THAT(table_row(row, options), HasSubstr(" -"));
  EXPECT_TRUE(nlohmann::json::parse(json_row(row, options, {}))["percent"].is_null());
}

TEST(BenchReduce, FiguresCountWhatIsReadAndWritten) {
  BenchOptions options = options_for(DType::bfloat16, Op::avg, 3);
  const ReduceRow row{.bytes = 1'000'000, .us = 10, .limit_us = 8, .wrong = 2};
  EXPECT_EQ(nlohmann::json::parse(json_row(row, options, {})),
            nlohmann::json::parse(R"({"collective":"reduction","device":"cpu","gpu":null,"sources":3,"dtype":"bfloat16",
              "op":"avg","bytes":1000000,"us":10.0,"gbs":400.0,"limit_us":8.0,"limit_gbs":500.0,"percent":80.0,
              "wrong":2})"));
  options.device = "cuda";
  EXPECT_EQ(nlohmann::json::parse(json_row(row, options, kGpu))["gpu"], "NVIDIA H100 80GB HBM3");
}

TEST(BenchReduce, TheTableSaysWhatItIsAndFitsTheScreen) {
  const BenchOptions options = options_for(DType::float32, Op::sum, 2);
  const std::string cpu = reduce_head(options, {}), gpu = reduce_head(options, kGpu);
  EXPECT_THAT(cpu, HasSubstr("2 sources, float32 sum in canonical order, on one thread of the CPU\n"));
  EXPECT_THAT(cpu, HasSubstr("# limit: a copy on the same thread (copy_bytes), reads and writes as many bytes"));
  EXPECT_THAT(cpu, HasSubstr("3 x bytes"));
  EXPECT_THAT(gpu, HasSubstr("on GPU 1, NVIDIA H100 80GB HBM3, PCI 0000:3b:00.0\n"));
  EXPECT_THAT(gpu, HasSubstr("by the GPU's clock"));
  EXPECT_THAT(gpu, HasSubstr("# limit: a copy from the GPU's memory to its memory (cudaMemcpyAsync)"));
  EXPECT_THAT(gpu, HasSubstr("differ in any bit from the CPU's reduce() of the same inputs"));
  std::istringstream lines(gpu);
  std::size_t width = 0;  // of the last line and its end
  for (std::string line; std::getline(lines, line); width = line.size() + 1) EXPECT_LE(line.size(), 130u) << line;
  EXPECT_EQ(width, table_row({.bytes = 8, .us = 0.5}, options).size());
  EXPECT_EQ(width,
            table_row({.bytes = 1ul << 40, .us = 123456789, .limit_us = 1234567, .wrong = 123456789}, options).size());
}

TEST(BenchReduceCommand, PrintsARowASizeWithItsLimit) {
  const Result run = shell(
      "$TUTTI bench reduction -n 5 --dtype bfloat16 --op max --sizes 0,8,100003 --iterations 2 --rounds 1 --json "
      "--device cpu");
  EXPECT_EQ(run.status, 0) << run.err;
  EXPECT_THAT(run.err, HasSubstr("rounded down to multiples of 2 bytes, whole elements\n"));
  std::istringstream lines(run.out);
  std::vector<std::size_t> bytes;
  for (std::string line; std::getline(lines, line);) {
    const auto row = nlohmann::json::parse(line);
    bytes.push_back(row["bytes"]);
    EXPECT_EQ(row["sources"], 5);
    EXPECT_EQ(row["wrong"], 0);
    EXPECT_EQ(row["limit_us"].is_null(), bytes.back() == 0);
  }
  EXPECT_THAT(bytes, ElementsAre(0, 8, 100002));
  const Result table = shell("$TUTTI bench reduction --min 8 --max 64 --iterations 1 --rounds 1");
  EXPECT_EQ(table.status, 0) << table.err;
  EXPECT_THAT(table.out, HasSubstr("# tutti bench reduction: 2 sources"));
  EXPECT_THAT(table.out, HasSubstr("\n# 2 sizes, 0 wrong\n"));
}

TEST(BenchReduceCommand, RefusesWhatSaysNothingOfIt) {
  const std::vector<std::string> all{"--transport shm", "--algorithm ring", "--order any", "--root 0",
                                     "--symmetric",     "--async",          "--in-place",  "--touch"};
  for (const std::string& words : std::span(all).first(kBrief ? 2 : all.size())) {
    for (const char* device : {"cpu", "cuda"}) {
      const Result run = shell("$TUTTI bench reduction --device " + std::string(device) + " " + words);
      EXPECT_EQ(run.status, 2) << words;
      EXPECT_THAT(run.err,
                  HasSubstr("tutti bench: " + words.substr(0, words.find(' ')) + " says nothing of reduction"));
      EXPECT_EQ(run.out, "");
    }
  }
  EXPECT_THAT(shell("$TUTTI bench reduction -n 1025").err, HasSubstr("-n 1025: reduction has 1 to 1024 sources"));
  for (const char* words : {"-n 0", "-n 1025", "--sizes 2T", "--min 2K --max 1K", "--dtype float31"})
    EXPECT_EQ(shell(std::string("$TUTTI bench reduction ") + words).status, 2) << words;
  EXPECT_THAT(shell("$TUTTI bench redcue").err, HasSubstr("redcue is not one of"));
  EXPECT_EQ(shell("TUTTI_TRANSPORT=pigeon $TUTTI bench reduction --sizes 8 --iterations 1").status, 0)
      << "it needs nothing of how ranks talk";
}

// What each command says to --device cuda where there is no GPU.
struct GpuCommandLine {
  const char *name, *words;
};
class WithoutGpu : public testing::TestWithParam<GpuCommandLine> {};
INSTANTIATE_TEST_SUITE_P(
    Commands, WithoutGpu,
    testing::Values(GpuCommandLine{"BenchReduce", "bench reduction"}, GpuCommandLine{"Bench", "bench all_reduce -n 2"},
                    GpuCommandLine{"Train", "train -n 2 --data " NIST_DATA "filip.csv --degree 10"}),
    [](const auto& each) { return each.param.name; });

TEST_P(WithoutGpu, OneLineSaysWhyAndTheStatusIsOne) {
  const cuda::Devices found = cuda::find_devices();
  if (!found.usable.empty()) GTEST_SKIP() << "there is one: " << found.usable.front().name;
  const std::string words = GetParam().words;
  const Result run = shell("$TUTTI " + words + " --device cuda");
  EXPECT_EQ(run.status, 1);
  EXPECT_EQ(run.out, "");
  EXPECT_EQ(run.err, "tutti " + words.substr(0, words.find(' ')) + ": --device cuda: " + found.why_none() + "\n");
}

}  // namespace
}  // namespace tutti::internal::tools
