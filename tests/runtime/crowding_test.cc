// What a rank makes of the clock and of the switches it is told: made-up times, no waiting.
#include "runtime/crowding.h"

#include <gtest/gtest.h>

namespace tutti::internal {
namespace {

using namespace std::chrono_literals;
using Clock = Crowding::Clock;

// A rank that waits again and again, and the system that counts its switches.
class CrowdingOf : public testing::Test {
 protected:
  // A wait of which nothing is known but its end: the thread was away for so long before it, and lost its processor so
  // often. Returns whether the system was asked.
  bool wait(Clock::duration away, std::uint64_t switches, std::uint64_t moves = 1) {
    const Clock::time_point since = now_ + 30us;
    now_ = since + away;
    switches_ += switches;
    moves_ += moves;
    return look({.at = now_, .since = since, .away = away, .is_last = true});
  }
  // A wait of so many looks that are 30 us apart, which is not disturbed but behind one of them.
  void wait_and_look(int looks, int disturbed = -1) {
    const Clock::time_point since = now_;
    for (int i = 1; i <= looks; ++i) {
      now_ += 30us;
      look({.at = now_, .since = since, .away = 30us, .is_last = i == looks});
      if (i == disturbed) ++switches_;
    }
  }
  bool look(const Look& look) {
    if (!rank_.wants_sample(look)) return false;
    rank_.take({.switches = switches_, .moves = moves_, .thread = thread_}, look);
    return true;
  }
  // Waits of a rank that shares its processor with one that does not give way: a slice of the scheduler each.
  void wait_for_slices(int waits) {
    for (int i = 0; i < waits; ++i) wait(4ms, 1);
  }
  void make_crowded() {
    wait_for_slices(Crowding::kSigns + 1);
    ASSERT_TRUE(rank_.is_crowded());
  }
  // Waits of a crowded rank, each a yield, of which one in `each` lets another thread run.
  void yield_for(Clock::duration time, int each, Clock::duration yield, std::uint64_t moves = 1) {
    const Clock::time_point end = now_ + time;
    for (int i = 1; now_ < end; ++i) {
      rank_.yielded();
      wait(yield, i % each == 0 ? 1 : 0, moves);
    }
  }

  Crowding rank_;
  Clock::time_point now_{1h};
  std::uint64_t switches_ = 1000, moves_ = 0;  // it has a life behind it
  std::thread::id thread_ = std::this_thread::get_id();
};

TEST_F(CrowdingOf, ARankThatIsNotDisturbedAsksTheSystemNothing) {
  for (int i = 0; i < 1000; ++i) EXPECT_FALSE(wait(150us, 0));
  EXPECT_FALSE(rank_.is_crowded());
}

TEST_F(CrowdingOf, ARankThatLosesItsProcessorInAFewWaitsIsCrowded) {
  wait_for_slices(Crowding::kSigns);  // the first says from where to count
  EXPECT_FALSE(rank_.is_crowded());
  wait_for_slices(1);
  EXPECT_TRUE(rank_.is_crowded());
}

TEST_F(CrowdingOf, AnotherMachineOfTheHypervisorIsNotGivenWayTo) {
  for (int i = 0; i < 100; ++i) EXPECT_TRUE(wait(4ms, 0));
  EXPECT_FALSE(rank_.is_crowded());
}

TEST_F(CrowdingOf, SignsThatAreSeldomSayNothing) {
  for (int i = 0; i < 100; ++i) {
    wait(4ms, 1);
    now_ += 46ms;  // three of them take longer than kSignsWithin
  }
  EXPECT_FALSE(rank_.is_crowded());
}

// The others have given way already: each comes and goes within microseconds.
TEST_F(CrowdingOf, ARankThatOthersGiveWayToFindsOutInItsLongWaits) {
  for (int i = 0; i < Crowding::kSigns; ++i) {
    EXPECT_FALSE(rank_.is_crowded());
    wait_and_look(100, 99);
  }
  EXPECT_TRUE(rank_.is_crowded());
}

TEST_F(CrowdingOf, ProcessorsLostBetweenLongWaitsSayNothing) {
  for (int i = 0; i < 100; ++i) {
    switches_ += 5;  // while it computed
    wait_and_look(100);
  }
  EXPECT_FALSE(rank_.is_crowded());
}

TEST_F(CrowdingOf, CountsOfTwoThreadsAreNotHeldAgainstEachOther) {
  std::thread::id other;
  for (int i = 0; i < 100; ++i) {
    std::swap(thread_, other);
    wait(4ms, 1);
  }
  EXPECT_FALSE(rank_.is_crowded());
}

TEST_F(CrowdingOf, ARankStaysCrowdedWhileItsYieldsLetOthersRun) {
  make_crowded();
  yield_for(60s, 2, 20us);
  EXPECT_TRUE(rank_.is_crowded());
}

TEST_F(CrowdingOf, ARankSpinsAgainSoonAfterTheOthersAreGone) {
  make_crowded();
  yield_for(Crowding::kQuiet - 20ms, 1000, 1us);  // now and then something of the system's runs
  EXPECT_TRUE(rank_.is_crowded());
  yield_for(40ms, 1000, 1us);
  EXPECT_FALSE(rank_.is_crowded());
  make_crowded();
}

// It waits for a thread that computes on its processor, say: its calls are no slower than before.
TEST_F(CrowdingOf, ARankStaysCrowdedWhereItsYieldsAreLongAndItsCallsNotSlower) {
  make_crowded();
  yield_for(60s, 1, 4ms);
  EXPECT_TRUE(rank_.is_crowded());
}

TEST_F(CrowdingOf, ACrowdedRankSleepsForAWhileAfterTwoLongYields) {
  make_crowded();
  const auto yield = [&](Clock::duration away) {
    now_ += away;
    rank_.note_yield({.at = now_, .since = now_ - away, .away = away});
    return rank_.no_yield_before() > now_;
  };
  for (int i = 0; i < 100; ++i) EXPECT_FALSE(yield(100us)) << "others that wait";
  for (int i = 0; i < 10; ++i) {
    EXPECT_FALSE(yield(4ms)) << "something passing";
    now_ += 20ms;
  }
  EXPECT_FALSE(yield(4ms));
  EXPECT_TRUE(yield(4ms));
  EXPECT_EQ(rank_.no_yield_before(), now_ + Crowding::kSleepsFor);
}

TEST_F(CrowdingOf, ARankThatSpinsDoesNotSleepSooner) {
  for (int i = 0; i < 10; ++i) rank_.note_yield({.at = now_, .since = now_ - 4ms, .away = 4ms});
  EXPECT_LT(rank_.no_yield_before(), now_);
}

class CrowdingInVain : public CrowdingOf {
 protected:
  // A thread computes on its processor, for which it does not wait: as long as the rank spins, it does much within its
  // own slices.
  void make_crowded_beside_one_that_computes() {
    for (int i = 0; i <= Crowding::kSigns; ++i) wait(4ms, 1, 1000);
  }
  void yield_to_one_that_computes() { yield_for(2 * Crowding::kTrial + 20ms, 1, 4ms); }
};

TEST_F(CrowdingInVain, ARankSpinsAgainIfItsCallsAreMuchSlower) {
  make_crowded_beside_one_that_computes();
  EXPECT_TRUE(rank_.is_crowded());
  yield_to_one_that_computes();
  EXPECT_FALSE(rank_.is_crowded());
}

TEST_F(CrowdingInVain, NotBeforeTheOthersHaveHadTheTimeToGiveWayToo) {
  make_crowded_beside_one_that_computes();
  yield_to_one_that_computes();
  now_ += Crowding::kShortestPause;
  make_crowded_beside_one_that_computes();
  ASSERT_TRUE(rank_.is_crowded());
  yield_for(Crowding::kTrial, 1, 4ms);
  EXPECT_TRUE(rank_.is_crowded());
  yield_for(60s, 1, 20us, 100);
  EXPECT_TRUE(rank_.is_crowded());
}

TEST_F(CrowdingInVain, ARankTriesAgainAfterAPauseThatDoubles) {
  for (Clock::duration pause = Crowding::kShortestPause; pause < Crowding::kLongestPause; pause *= 2) {
    make_crowded_beside_one_that_computes();
    ASSERT_TRUE(rank_.is_crowded());
    yield_to_one_that_computes();
    ASSERT_FALSE(rank_.is_crowded());
    for (const Clock::time_point end = now_ + pause - 100ms; now_ < end;) make_crowded_beside_one_that_computes();
    ASSERT_FALSE(rank_.is_crowded());
    now_ += 200ms;
  }
}

TEST_F(CrowdingOf, WhatWasKnownAtTheJoinStays) {
  rank_.set_crowded();
  yield_for(1s, 1000, 1us);
  EXPECT_FALSE(wait(1s, 0)) << "nothing is asked";
  EXPECT_TRUE(rank_.is_crowded());
}

}  // namespace
}  // namespace tutti::internal
