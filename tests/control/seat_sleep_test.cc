// Ranks that stood still themselves, and look at the others when they wake.
#include <gtest/gtest.h>

#include <vector>

#include "control/agreement.h"

namespace tutti::internal {
namespace {

using std::chrono::milliseconds;
using Kind = Notice::Kind;

// As in a control group with a small quota. Nobody looks for longer than three ticks, again and again.
TEST(SeatSleep, WhereAllStandStillAgainAndAgainASilentRankIsLostAndNoOther) {
  for (const int silent : {0, 2}) {
    SimulatedJob job({0, 1, 2, 3}, kUsual, 3);
    const auto all_others = [&](const auto& act) {
      for (int rank = 0; rank < job.size(); ++rank)
        if (rank != silent) act(rank);
    };
    job.run(milliseconds(1000));
    job.stop(silent);
    for (int round = 0; round < 40; ++round) {
      all_others([&](int rank) { job.stop(rank); });
      job.run(milliseconds(1700));
      all_others([&](int rank) { job.go_on(rank); });
      job.run(milliseconds(100));
    }
    all_others([&](int rank) {
      EXPECT_EQ(job.events(rank).size(), 1u) << rank;
      EXPECT_TRUE(job.has_heard(rank, Kind::lost, silent)) << rank << " of " << silent;
    });
  }
}

// It hears of the hub's end before its own clock has told it that it slept.
TEST(SeatSleep, WhoWakesUpWithTheHubsEndDoesNotGoOnAlone) {
  SimulatedJob job(one_host(4), kUsual, 10);
  job.run(milliseconds(1000));
  job.stop(1);
  job.run(milliseconds(100));
  job.kill(0);
  job.run(milliseconds(7000));
  ASSERT_TRUE(job.has_heard(2, Kind::lost, 1));
  job.stop(2);
  job.stop(3);
  job.go_on(1);
  job.run(milliseconds(15'000));
  EXPECT_TRUE(job.has_heard(1, Kind::lost, 2));
  EXPECT_FALSE(may_go_on(job, 1));
  job.go_on(2);
  job.run(milliseconds(1000));
  EXPECT_TRUE(may_go_on(job, 2));
}

// Rank 1 has given rank 2 up, which has not heard so, and then stands still itself. One of them may go on, not both.
TEST(SeatSleep, WhoStoodStillForLongDoesNotGoOnAlone) {
  SimulatedJob job(one_host(3), kUsual, 8753);
  job.run(milliseconds(1000));
  job.stop(0);
  job.stop(2);
  job.run(milliseconds(7000));
  ASSERT_TRUE(job.has_heard(1, Kind::lost, 2));
  job.stop(1);
  job.go_on(2);
  job.run(milliseconds(20'000));
  EXPECT_TRUE(job.has_heard(2, Kind::lost, 1));
  EXPECT_FALSE(may_go_on(job, 2));
  job.go_on(1);
  job.run(milliseconds(1000));
  EXPECT_TRUE(may_go_on(job, 1));
}

}  // namespace
}  // namespace tutti::internal
