// `tutti train --device cuda`, by processes and by threads. On a fake device, and on a real one.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "brief.h"
#include "cuda/device.h"
#include "tools/shell.h"

namespace tutti::internal::tools {
namespace {

class GpuTrain : public testing::Test {
 protected:
  void SetUp() override {
    const cuda::Devices found = cuda::find_devices();
    if (found.usable.empty()) GTEST_SKIP() << found.why_none();
  }
  static nlohmann::json train(const std::string& words) {
    const Result run = shell("$TUTTI train --json " + words);
    EXPECT_EQ(run.status, 0) << words << "\n" << run.err;
    auto result = nlohmann::json::parse(run.out);
    result.erase("steps_per_s");
    return result;
  }
};

TEST_F(GpuTrain, EndsInTheWeightsOfTheCpuOnAnyNumberOfRanksOverEveryTransport) {
  for (const char* ranks : kBrief ? std::vector{"3"} : std::vector{"1", "2", "3"}) {
    const std::string words = std::string("--data " NIST_DATA "filip.csv --degree 10 -n ") + ranks;
    const auto expected = train(words + " --transport inproc");
    for (const char* transport : {"inproc", "shm", "tcp"})
      EXPECT_EQ(train(words + " --device cuda --transport " + transport), expected) << transport;
  }
}

TEST_F(GpuTrain, EveryOptimizerEndsInTheWeightsOfTheCpu) {
  for (const char* how : {"lbfgs", "adam --steps 40", "sgd --steps 40 --batch 7"}) {
    const std::string words = std::string("-n 2 --data " NIST_DATA "pontius.csv --degree 2 --optimizer ") + how;
    EXPECT_EQ(train(words + " --device cuda"), train(words)) << how;
  }
}

}  // namespace
}  // namespace tutti::internal::tools
