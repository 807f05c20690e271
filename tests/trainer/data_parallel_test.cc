#include "trainer/data_parallel.h"

#include <gtest/gtest.h>

#include "trainer/train.h"

namespace tutti::trainer {
namespace {

class DataParallelOver : public testing::TestWithParam<const char*> {
 protected:
  // What every rank returned.
  static std::vector<TrainResult> filip(int ranks, const char* transport) {
    const Dataset data = read_csv(NIST_DATA "filip.csv");
    std::vector<TrainResult> results(ranks);
    const auto body = [&](Communicator& world) { results[world.rank()] = train(world, data, {.degree = 10}); };
    Communicator::run_threads(ranks, body, transport);
    return results;
  }
};

TEST_P(DataParallelOver, EndsInTheSameWeightsAsInprocOnEveryRank) {
  for (int ranks : {1, 2, 3}) {
    const std::string expected = filip(ranks, "inproc").front().weights_sha256;
    for (const TrainResult& result : filip(ranks, GetParam())) EXPECT_EQ(result.weights_sha256, expected);
  }
}

TEST_P(DataParallelOver, AgreesExactlyWhenAllRanksHoldTheSame) {
  constexpr std::uint64_t kValue = 0x8000'0000'0000'0001;
  const auto body = [&](Communicator& world) {
    DataParallel sync(world);
    EXPECT_TRUE(sync.agree(kValue));
    EXPECT_TRUE(sync.agree(0));
    EXPECT_TRUE(sync.agree(~std::uint64_t{0}));
    for (int odd = 0; odd < world.size(); ++odd) {
      EXPECT_FALSE(sync.agree(kValue + (world.rank() == odd ? 1 : 0)));
      EXPECT_FALSE(sync.agree(kValue - (world.rank() == odd ? 1 : 0)));
    }
  };
  Communicator::run_threads(3, body, GetParam());
}

INSTANTIATE_TEST_SUITE_P(Transports, DataParallelOver, testing::Values("inproc", "shm", "tcp"),
                         [](const auto& instance) { return std::string(instance.param); });

}  // namespace
}  // namespace tutti::trainer
