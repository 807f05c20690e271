// Ranks that stood still themselves, and look at the others when they wake.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
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

// All stand still for far longer than the heartbeat timeout, and wake in any order within a second.
TEST(SeatSleep, WhoWakesWithTheOthersGivesNobodyUp) {
  SimulatedJob job({0, 0, 1, 1, 2}, kUsual, 4);
  std::mt19937 random(5);
  job.run(milliseconds(1000));
  for (int round = 0; round < 20; ++round) {
    for (int rank = 0; rank < job.size(); ++rank) job.stop(rank);
    job.run(milliseconds(20'000));
    std::vector<int> order{0, 1, 2, 3, 4};
    std::ranges::shuffle(order, random);
    for (const int rank : order) {
      job.run(milliseconds(random() % 200));
      job.go_on(rank);
    }
    job.run(milliseconds(2000));
  }
  for (int rank = 0; rank < job.size(); ++rank) EXPECT_TRUE(job.events(rank).empty()) << rank;
}

// Each runs for a tenth of a second and stands still for 1.7, none while another one runs.
TEST(SeatSleep, RanksThatRunInTurnGiveNobodyUp) {
  SimulatedJob job({0, 1, 2, 2}, kUsual, 6);
  job.run(milliseconds(1000));
  for (int step = 0; step < 6000; ++step) {
    for (int rank = 0; rank < job.size(); ++rank)
      (20 * step + 400 * rank) % 1800 < 100 ? job.go_on(rank) : job.stop(rank);
    job.run(milliseconds(20));
  }
  for (int rank = 0; rank < job.size(); ++rank) EXPECT_TRUE(job.events(rank).empty()) << rank;
}

// The others may have given it up while it slept. What the hub had said before its end is read late, and says nothing
// of that.
TEST(SeatSleep, WhoReadsAnOldWordOfTheHubAfterItsSleepDoesNotGoOnAlone) {
  Seat seat(1, one_host(4), kUsual, {});
  seat.tick(after(500));
  seat.received(0, Ping{0, true}, after(900));
  seat.tick(after(1000));
  seat.request(Probe{1, 2, 7, 7, 3}, after(8100));
  seat.received(0, Ping{0, true}, after(8800));
  seat.ended(0, after(8801));
  ASSERT_TRUE(seat.is_hub());
  for (int ms = 9300; ms < 30'000; ms += 500) seat.tick(after(ms));
  for (const Notice& notice : seat.take_notices())
    EXPECT_TRUE(notice.peer < 2 || notice.authority == Authority::minority) << notice.peer << ": " << notice.message;
  EXPECT_TRUE(seat.log().is_lost(2));
}

}  // namespace
}  // namespace tutti::internal
