// `tutti bench COLLECTIVE --device cuda`: right results over every transport, beside a limit. Skipped where
// find_devices() finds no GPU, and says why.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "brief.h"
#include "cuda/device.h"
#include "tools/shell.h"

namespace tutti::internal::tools {
namespace {

using testing::HasSubstr;

constexpr const char* kCollectives[] = {"all_reduce", "reduce_scatter", "all_gather", "broadcast", "barrier"};

struct Over {
  const char* transport;
  int ranks;
  friend std::ostream& operator<<(std::ostream& out, const Over& it) { return out << it.transport << it.ranks; }
};
class BenchOnGpu : public testing::TestWithParam<Over> {
 protected:
  void SetUp() override {
    if (found_.usable.empty()) GTEST_SKIP() << found_.why_none();
  }
  // The rest of a command line that begins with the collective.
  static std::string over(const std::string& collective) {
    return "$TUTTI bench " + collective + " --device cuda --iterations 2 --rounds 1 --transport " +
           GetParam().transport + " -n " + std::to_string(GetParam().ranks) + " ";
  }
  const cuda::Devices found_ = cuda::find_devices();
};
std::vector<Over> ways() {
  if (kBrief) return {{"inproc", 3}, {"shm", 1}, {"shm", 2}, {"tcp", 3}};
  return {{"inproc", 1}, {"inproc", 2}, {"inproc", 3}, {"shm", 1}, {"shm", 2},
          {"shm", 3},    {"tcp", 1},    {"tcp", 2},    {"tcp", 3}};
}
INSTANTIATE_TEST_SUITE_P(Transports, BenchOnGpu, testing::ValuesIn(ways()),
                         [](const auto& each) { return each.param.transport + std::to_string(each.param.ranks); });

void expect_right(const nlohmann::json& row, const Over& over) {
  EXPECT_EQ(row["wrong"], 0) << row;
  EXPECT_EQ(row["device"], "cuda");
  EXPECT_EQ(row["transport"], over.transport);
  EXPECT_EQ(row["ranks"], over.ranks);
  EXPECT_GT(row["us"], 0.0);
  if (row["bytes"] == 0) return;
  EXPECT_GT(row["limit_us"], 0.0) << row;
}

// The largest goes in more than one part where it goes by way of the host.
TEST_P(BenchOnGpu, EveryCollectiveIsRightAndHasItsLimit) {
  for (const std::string collective : kCollectives) {
    const Result run =
        shell(over(collective) + "--sizes 0,12,100008" + (collective == "all_reduce" ? ",9000012" : "") + " --json");
    EXPECT_EQ(run.status, 0) << collective << ": " << run.err;
    std::istringstream lines(run.out);
    int rows = 0;
    for (std::string line; std::getline(lines, line); ++rows) expect_right(nlohmann::json::parse(line), GetParam());
    EXPECT_EQ(rows, collective == "barrier" ? 1 : collective == "all_reduce" ? 4 : 3);
  }
}

TEST_P(BenchOnGpu, EveryFormIsRight) {
  std::vector forms{"--in-place --touch --dtype int8", "--async --dtype float64", "--dtype bfloat16"};
  if (kBrief) forms.pop_back();  // as the next but for its type
  for (const std::string collective : {"all_reduce", "reduce_scatter", "all_gather", "broadcast"}) {
    for (const std::string form : forms) {
      const Result run = shell(over(collective) + "--sizes 24,100008 --json " + form);
      EXPECT_EQ(run.status, 0) << collective << " " << form << ": " << run.err;
      std::istringstream lines(run.out);
      for (std::string line; std::getline(lines, line);) expect_right(nlohmann::json::parse(line), GetParam());
    }
  }
}

TEST_P(BenchOnGpu, TheHeadSaysWhichGpuAndWhatTheLimitIs) {
  const Result run = shell(over("all_reduce") + "--sizes 8");
  EXPECT_EQ(run.status, 0) << run.err;
  EXPECT_THAT(run.out, HasSubstr("GPU 0, " + found_.usable.front().name + ", PCI " + found_.usable.front().pci + "\n"));
  EXPECT_THAT(run.out, HasSubstr("# 1 size, 0 wrong\n"));
  const std::string transport = GetParam().transport;
  if (transport == "inproc") {
    EXPECT_THAT(run.out, HasSubstr("# limit: copies within the GPU's memory"));
  } else if (transport == "tcp" && GetParam().ranks != 2) {
    EXPECT_THAT(run.out, HasSubstr("# limit: copies of what each rank reads and writes"));
    EXPECT_THAT(run.out, HasSubstr("#        of the transport: none over tcp but for 2 ranks\n"));
  } else {
    EXPECT_THAT(run.out, HasSubstr("# limit: the slower of "));
    EXPECT_THAT(run.out, HasSubstr("#        and copies of what each rank reads and writes"));
  }
}

}  // namespace
}  // namespace tutti::internal::tools
