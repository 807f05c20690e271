// `tutti bench reduction` and `tutti doctor` on a GPU. Skipped where find_devices() finds none, and says why.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <sstream>

#include "cuda/device.h"
#include "tools/shell.h"
#include "tutti/types.h"

namespace tutti::internal::tools {
namespace {

using testing::HasSubstr;

class GpuCommand : public testing::Test {
 protected:
  void SetUp() override {
    if (found_.usable.empty()) GTEST_SKIP() << found_.why_none();
  }
  const cuda::Devices found_ = cuda::find_devices();
};

TEST_F(GpuCommand, BenchReduceGivesTheBitsOfTheCpu) {
  for (const int sources : {1, 2, 8, 9}) {
    for (const DType dtype : all_dtypes()) {
      const Result run = shell("$TUTTI bench reduction --device cuda --sizes 0,8,100003,4M --iterations 3 --json -n " +
                               std::to_string(sources) + " --dtype " + std::string(to_string(dtype)));
      EXPECT_EQ(run.status, 0) << run.err;
      std::istringstream lines(run.out);
      int rows = 0;
      for (std::string line; std::getline(lines, line); ++rows) {
        const auto row = nlohmann::json::parse(line);
        EXPECT_EQ(row["gpu"], found_.usable.front().name);
        EXPECT_EQ(row["wrong"], 0);
        if (row["bytes"] != 0) {
          EXPECT_GT(row["us"], 0.0);
          EXPECT_GT(row["limit_us"], 0.0);
        }
      }
      EXPECT_EQ(rows, 4);
    }
  }
}

TEST_F(GpuCommand, BenchReducePrintsATable) {
  const Result run = shell("$TUTTI bench reduction --device cuda --max 4K --rounds 2");
  EXPECT_EQ(run.status, 0) << run.err;
  EXPECT_THAT(run.out, HasSubstr(found_.usable.front().name));
  EXPECT_THAT(run.out, HasSubstr("# 4 sizes, 0 wrong\n"));
}

TEST_F(GpuCommand, DoctorListsEach) {
  const auto gpus = nlohmann::json::parse(shell("$TUTTI doctor --json").out)["gpus"];
  ASSERT_EQ(gpus["devices"].size(), found_.usable.size());
  EXPECT_EQ(gpus["links"].size(), found_.usable.size() * (found_.usable.size() - 1) / 2);
  EXPECT_TRUE(gpus["why_none"].is_null());
  EXPECT_FALSE(gpus["driver_cuda"].is_null());
  EXPECT_FALSE(gpus["toolkit"].is_null());
  for (std::size_t i = 0; i < found_.usable.size(); ++i) EXPECT_EQ(gpus["devices"][i]["pci"], found_.usable[i].pci);
}

}  // namespace
}  // namespace tutti::internal::tools
