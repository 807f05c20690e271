// Ranks that stand still, the hub and the ranks that would be the next above all.
#include <gtest/gtest.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "brief.h"
#include "control/agreement.h"

namespace tutti::internal {
namespace {

using std::chrono::milliseconds;
using Kind = Notice::Kind;

TEST(SeatSilence, ARankThatStandsStillIsGivenUpAndHearsSoWhenItWakes) {
  for (int victim = 0; victim < 3; ++victim)
    for (const auto& hosts : {std::vector{0, 0, 0}, std::vector{0, 1, 2}}) {
      SimulatedJob job(hosts, kUsual, 2);
      job.run(milliseconds(1000));
      job.stop(victim);
      job.run(milliseconds(4500));
      for (int rank = 0; rank < 3; ++rank) EXPECT_TRUE(job.heard(rank).empty());
      job.run(milliseconds(2500));
      for (int rank = 0; rank < 3; ++rank) {
        EXPECT_EQ(job.has_heard(rank, Kind::lost, victim), rank != victim) << rank << " of " << victim;
      }
      job.run(milliseconds(13'000));
      job.go_on(victim);
      job.run(milliseconds(1000));
      ASSERT_EQ(job.heard(victim).size(), 1u) << victim;
      EXPECT_EQ(job.heard(victim)[0].kind, Kind::expelled);
      EXPECT_TRUE(job.seat(victim).is_over());
      expect_agreement(job);
    }
}

// The hub, the ranks that would be the next, and members, at the same moment: one silence is not noticed after the
// other.
TEST(SeatSilence, RanksThatStandStillTogetherAreGivenUpTogether) {
  for (const auto& stopped : std::vector<std::vector<int>>{{0, 1}, {0, 1, 4}, {0, 1, 2}, {0, 3, 5}, {0, 1, 6}})
    for (const auto& hosts : {one_host(7), std::vector{0, 1, 2, 3, 4, 5, 6}, std::vector{0, 0, 0, 1, 1, 1, 1}})
      for (const int between : {0, 1000}) {
        SimulatedJob job(hosts, kUsual, 7);
        job.run(milliseconds(1000));
        for (const int rank : stopped) {
          job.stop(rank);
          job.run(milliseconds(between));
        }
        job.run(milliseconds(7000 - between));  // from the last one
        for (int rank = 0; rank < 7; ++rank)
          for (const int victim : stopped)
            EXPECT_EQ(job.has_heard(rank, Kind::lost, victim), job.runs(rank)) << rank << " of " << victim;
        expect_agreement(job);
        for (const int rank : stopped) job.go_on(rank);
        job.run(milliseconds(1000));
        for (int rank = 0; rank < 7; ++rank)
          EXPECT_EQ(job.seat(rank).is_over(), std::ranges::find(stopped, rank) != stopped.end()) << rank;
      }
}

// More than are asked at once, and a whole host of many ranks.
TEST(SeatSilence, HoweverManyStandStillTheOthersGoOnTogether) {
  std::vector<int> two_hosts = one_host(8);
  two_hosts.resize(17, 1);
  for (const auto& [hosts, stopped] : {std::pair{one_host(9), 4}, {one_host(9), 7}, {two_hosts, 5}, {two_hosts, 8}}) {
    SimulatedJob job(hosts, kUsual, 9);
    job.run(milliseconds(1000));
    for (int rank = 0; rank < stopped; ++rank) job.stop(rank);
    job.run(milliseconds(15'000));
    for (int rank = stopped; rank < job.size(); ++rank)
      for (int other = 0; other < job.size(); ++other)
        EXPECT_EQ(job.has_heard(rank, Kind::lost, other), other < stopped) << rank << " of " << other;
    for (int rank = 0; rank < stopped; ++rank) job.go_on(rank);
    job.run(milliseconds(1000));
    expect_agreement(job);
    for (int rank = 0; rank < job.size(); ++rank) EXPECT_EQ(may_go_on(job, rank), rank >= stopped) << rank;
  }
}

// The hub stands still for about as long as it takes to be given up: some have turned away. Then it may leave, and the
// ranks behind it.
TEST(SeatSilence, AfterAHubThatStoodStillNobodyIsDoubted) {
  for (int stands_still = 4400; stands_still < 6600; stands_still += kBrief ? 400 : 50)
    for (const bool next_too : {false, true}) {
      SimulatedJob job({0, 1, 2, 3, 4, 5, 6, 7}, kUsual, static_cast<unsigned>(stands_still));
      job.run(milliseconds(1000));
      job.stop(0);
      if (next_too) job.stop(1);
      job.run(milliseconds(stands_still));
      job.go_on(0);
      job.go_on(1);
      job.run(milliseconds(20'000));
      expect_agreement(job);
      for (int leaver = 0; leaver < 4; ++leaver) {
        if (!job.seat(leaver).is_over()) job.leave(leaver);
        job.run(milliseconds(2000));
      }
      job.run(milliseconds(8000));
      expect_agreement(job);
      for (int rank = 4; rank < 8; ++rank) {
        EXPECT_TRUE(is_there(job, rank)) << rank << ", " << stands_still << " ms";
        for (const Notice& event : job.events(rank)) {
          EXPECT_TRUE(event.kind == Kind::left || event.peer < 2)
              << rank << " of " << event.peer << ": " << event.message;
        }
      }
    }
}

// Beside the hub, all are asked for a sign of life, and all give one.
TEST(SeatSilence, AHubThatStandsStillForAWhileOrForGoodCostsNoOtherRank) {
  for (const int stands_still : {1600, 3000, 4400, 60'000}) {
    SimulatedJob job({0, 1, 2, 3, 4, 5}, kUsual, 8);
    job.run(milliseconds(1000));
    job.stop(0);
    job.run(milliseconds(stands_still));
    job.go_on(0);
    job.run(milliseconds(10'000));
    const bool is_given_up = stands_still > 5000;
    for (int rank = 0; rank < 6; ++rank) {
      EXPECT_EQ(job.seat(rank).is_over(), is_given_up && rank == 0) << rank;
      EXPECT_EQ(job.events(rank).size(), is_given_up && rank > 0 ? 1u : 0u) << rank;
    }
    expect_agreement(job);
  }
}

// Nobody has come to it yet, when the earlier hub speaks again.
TEST(SeatSilence, AHubThatGoesBackSaysItsGoodbyeAndHandsOnWhatItHeard) {
  Seat seat(1, {0, 1, 2}, kUsual, after(0));
  int now = 0;
  while (!seat.is_hub() && now < 10'000) seat.tick(after(now += 500));
  seat.say_goodbye(after(now));
  EXPECT_FALSE(seat.is_over());  // rank 2 has not come
  seat.received(0, Ping{}, after(now + 100));
  EXPECT_EQ(seat.hub(), 0);
  seat.take_outgoing();
  seat.connected(after(now + 101));
  std::vector<std::size_t> kinds;
  for (const Outgoing& out : seat.take_outgoing()) kinds.push_back(out.message.index());
  const auto index = [](const ControlMessage& message) { return message.index(); };
  EXPECT_EQ(kinds, (std::vector{index(Enlistment{}), index(Goodbye{})}));
}

}  // namespace
}  // namespace tutti::internal
