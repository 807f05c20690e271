// Whom an error names: the same rank, in the same words, on every rank.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "runtime/ranks.h"

namespace tutti::internal {
namespace {

using namespace std::chrono_literals;

class Culprit : public ::testing::TestWithParam<std::string> {
 protected:
  static Settings with_timeout(std::chrono::milliseconds timeout) {
    Settings settings;
    settings.transport = GetParam() == "inproc" ? "auto" : GetParam();
    settings.timeout = timeout;
    return settings;
  }
};

// What the text says behind "rank N: ".
std::string reason(const Error& error) {
  const std::string text = error.what();
  return text.substr(text.find(": ") + 2);
}

TEST_P(Culprit, OneLateRankOfEightIsNamedByAll) {
  const auto thrown = outcomes(8, with_timeout(500ms), [&](Communicator& world) {
    if (world.rank() == 5) std::this_thread::sleep_for(1500ms);
    world.barrier();
  });
  for (const auto& error : thrown) {
    ASSERT_TRUE(error);
    EXPECT_EQ(error->code, ErrorCode::timeout) << error->what();
    EXPECT_EQ(error->peer, 5) << error->what();
    EXPECT_EQ(reason(*error), reason(*thrown[0]));
    EXPECT_TRUE(reason(*error).starts_with("rank 5 has not entered barrier #1")) << error->what();
  }
}

TEST_P(Culprit, AllLateRanksAreNamed) {
  const auto thrown = outcomes(6, with_timeout(500ms), [&](Communicator& world) {
    world.barrier();
    if (world.rank() == 1 || world.rank() == 4) std::this_thread::sleep_for(1500ms);
    std::vector<float> values(1000);
    world.all_reduce(std::span(values), Op::sum);
  });
  for (const auto& error : thrown) {
    ASSERT_TRUE(error);
    EXPECT_EQ(error->code, ErrorCode::timeout) << error->what();
    EXPECT_EQ(error->peer, 1) << error->what();
    EXPECT_EQ(reason(*error), reason(*thrown[0]));
    EXPECT_NE(reason(*error).find("ranks 1 and 4 have not entered all_reduce #2"), std::string::npos) << error->what();
    EXPECT_NE(reason(*error).find("rank 4 last completed barrier #1"), std::string::npos) << error->what();
  }
}

// The timeout of the one call says so, as a monitored barrier would.
TEST_P(Culprit, ABarrierWithATimeoutOfItsOwnNamesWhoIsMissing) {
  const auto thrown = outcomes(4, with_timeout(60s), [&](Communicator& world) {
    if (world.rank() >= 2) std::this_thread::sleep_for(1200ms);
    world.barrier({.timeout = 400ms});
  });
  for (const auto& error : thrown) {
    ASSERT_TRUE(error);
    EXPECT_EQ(error->code, ErrorCode::timeout) << error->what();
    EXPECT_EQ(error->peer, 2) << error->what();
    EXPECT_TRUE(reason(*error).starts_with("ranks 2 and 3 have not entered barrier #1")) << error->what();
  }
}

TEST_P(Culprit, AMismatchNamesTheSameTwoCallsToAll) {
  for (const int odd : {0, 2}) {
    const auto thrown = outcomes(4, with_timeout(20s), [&](Communicator& world) {
      std::vector<float> values(world.rank() == odd ? 100 : 200);
      world.all_reduce(std::span(values), Op::sum);
      world.barrier();
    });
    for (const auto& error : thrown) {
      ASSERT_TRUE(error);
      EXPECT_EQ(error->code, ErrorCode::mismatch) << error->what();
      EXPECT_EQ(error->peer, thrown[0]->peer);
      // The call in which a rank hears of it is its own.
      EXPECT_EQ(reason(*error).substr(0, reason(*error).find(", during")),
                reason(*thrown[0]).substr(0, reason(*thrown[0]).find(", during")));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Of, Culprit, ::testing::ValuesIn(kTransports), [](const auto& each) { return each.param; });

}  // namespace
}  // namespace tutti::internal
