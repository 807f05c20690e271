#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <thread>
#include <vector>

#include "control/control.h"
#include "types/call.h"

namespace tutti::internal {
namespace {

Tag kind_of(std::uint32_t sequence) { return Tag{{sequence % 1000 * 3ull + 1, sequence * 7ull + 2}}; }
Tag tag_of(std::uint32_t sequence) { return Call::numbered(kind_of(sequence), sequence); }

constexpr std::uint32_t kKept = CallHistory::kKept;

// A call of another kind than the one before.
void enter(CallHistory& history, std::uint32_t sequence) {
  history.begins(sequence, kind_of(sequence));
  history.entered(sequence);
}

TEST(CallHistory, KnowsNothingBeforeTheFirstCall) {
  const CallHistory history;
  Tag tag;
  EXPECT_FALSE(history.at(0, tag));
  EXPECT_FALSE(history.at(1, tag));
  EXPECT_FALSE(history.is_ahead_of(1));
  EXPECT_EQ(history.last_completed(), Tag{});
}

TEST(CallHistory, TellsItsLastRows) {
  CallHistory history;
  EXPECT_TRUE(history.last_rows(3).empty());
  for (const std::uint32_t sequence : {1u, 5u, 6u, 20u}) enter(history, sequence);
  const std::vector<CallRow> rows = history.last_rows(3);
  ASSERT_EQ(rows.size(), 3u);
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(rows[i].first, (std::vector{5u, 6u, 20u})[i]);
    EXPECT_EQ(rows[i].kind, kind_of(rows[i].first));
  }
  EXPECT_EQ(history.last_rows(100).size(), 4u);
  for (std::uint32_t sequence = 21; sequence < 21 + 2 * kKept; ++sequence) enter(history, sequence);
  EXPECT_EQ(history.last_rows(2 * kKept).size(), kKept);
}

TEST(CallHistory, RemembersTheLastThousandKindsOfCalls) {
  static_assert(kKept >= 1000);
  CallHistory history;
  for (std::uint32_t s = 1; s <= 2 * kKept + 100; ++s) {
    enter(history, s);
    if (s > 40 && s % 97 != 0) continue;
    for (std::uint32_t asked = 1; asked <= s + 1; ++asked) {
      Tag tag;
      ASSERT_EQ(history.at(asked, tag), asked <= s && asked + kKept > s) << asked << " at " << s;
      if (asked <= s && asked + kKept > s) {
        ASSERT_EQ(tag, tag_of(asked));
      }
      ASSERT_EQ(history.is_ahead_of(asked), asked < s);
    }
  }
}

TEST(CallHistory, RemembersCallsOfOneKindHoweverManyTheyAre) {
  CallHistory history;
  history.begins(1, kind_of(1));
  history.begins(10, kind_of(2));
  for (std::uint32_t s = 1; s <= 100'000; ++s) history.entered(s);
  Tag tag;
  for (const std::uint32_t asked : {1u, 9u, 10u, 99'999u, 100'000u}) {
    ASSERT_TRUE(history.at(asked, tag));
    EXPECT_EQ(tag, Call::numbered(kind_of(asked < 10 ? 1 : 2), asked));
  }
  EXPECT_FALSE(history.at(100'001, tag));
}

TEST(CallHistory, SaysWhichCallWasCompletedLast) {
  CallHistory history;
  enter(history, 1);
  EXPECT_EQ(history.last_completed(), Tag{});
  history.completed(1);
  enter(history, 2);
  EXPECT_EQ(history.last_completed(), tag_of(1));
}

TEST(CallHistory, GoesOnWhenSequencesWrapAround) {
  CallHistory history;
  enter(history, 0xffffffff);
  EXPECT_TRUE(history.is_ahead_of(0xfffffff0));
  EXPECT_FALSE(history.is_ahead_of(3));
}

TEST(CallHistory, NeverShowsHalfOfACall) {
  CallHistory history;
  std::atomic<bool> over{false};
  std::thread writer([&] {
    const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(300);
    for (std::uint32_t s = 1; s % 4096 != 0 || std::chrono::steady_clock::now() < until; ++s) {
      enter(history, s);
      history.completed(s);
    }
    over = true;
  });
  bool whole = true;
  while (!over) {
    // The oldest that are kept: they are being overwritten just now.
    const auto newest = static_cast<std::uint32_t>(history.last_completed().word[0] >> 32);
    for (std::uint32_t asked = newest - kKept; asked != newest - kKept + 6; ++asked)
      if (Tag tag; history.at(asked, tag)) whole = whole && tag == tag_of(asked);
  }
  writer.join();
  EXPECT_TRUE(whole);
}

// --- times

struct Recorded {
  CallHistory history;
  CallTimes::Clock clock{history.times()};
  void enter(std::uint32_t sequence) {
    clock.enters();
    history.entered(sequence);
  }
  void complete(std::uint32_t sequence) {
    history.completed(sequence);
    clock.completes();
  }
};

std::uint32_t number_of(const RecordedCall& call) { return Call::unpack(call.tag).sequence; }

TEST(CallTimes, AreOfTheLastThousandCallsInOrder) {
  Recorded recorded;
  recorded.history.begins(1, kind_of(1));
  std::uint64_t before = 0;
  for (std::uint32_t s = 1; s <= 3 * CallTimes::kKept; ++s) {
    recorded.enter(s);
    recorded.complete(s);
    if (s != CallTimes::kFirst - 1 && s != CallTimes::kFirst && s != CallTimes::kFirst + 1 && s % 331 != 0) continue;
    const std::vector<RecordedCall> calls = recorded.history.last(CallTimes::kKept);
    const std::uint32_t held = s < CallTimes::kFirst ? CallTimes::kFirst : CallTimes::kKept;
    ASSERT_EQ(calls.size(), std::min(s, held - 1)) << s;  // the place of one is for the next call
    EXPECT_EQ(number_of(calls.back()), s);
    EXPECT_EQ(number_of(calls.front()), s - calls.size() + 1);
    before = 0;
    for (const RecordedCall& call : calls) {
      ASSERT_GT(call.ticks.entered, before);
      ASSERT_GE(call.ticks.completed, call.ticks.entered);
      before = call.ticks.completed;
    }
  }
  EXPECT_EQ(recorded.history.last(10).size(), 10u);
}

TEST(CallTimes, OfACallThatIsNotOverHasNoEnd) {
  Recorded recorded;
  recorded.history.begins(1, kind_of(1));
  for (std::uint32_t s = 1; s <= 2000; ++s) {
    recorded.enter(s);
    if (s < 2000) recorded.complete(s);
  }
  const std::vector<RecordedCall> calls = recorded.history.last(2);
  ASSERT_EQ(calls.size(), 2u);
  EXPECT_GT(calls[0].ticks.completed, 0u);
  EXPECT_EQ(calls[1].ticks.completed, 0u);
  EXPECT_GT(calls[1].ticks.entered, calls[0].ticks.completed);
}

TEST(CallTimes, OfACallThatIsOverAtOnceAreOne) {
  Recorded recorded;
  recorded.history.begins(1, kind_of(1));
  for (std::uint32_t s = 1; s <= 2 * CallTimes::kFirst; ++s) {  // the ring grows meanwhile
    recorded.enter(s);
    recorded.history.completed(s);
    recorded.clock.completes_at_once();
  }
  const std::vector<RecordedCall> calls = recorded.history.last(CallTimes::kKept);
  ASSERT_EQ(calls.size(), 2 * CallTimes::kFirst);
  std::uint64_t before = 0;
  for (const RecordedCall& call : calls) {
    EXPECT_GT(call.ticks.entered, before);
    EXPECT_EQ(call.ticks.completed, call.ticks.entered);
    before = call.ticks.completed;
  }
}

// By how many microseconds the times of a call differ from what the wall clock showed next to it.
double distance_from_wall_clock() {
  using namespace std::chrono;
  const auto wall_us = [] { return duration_cast<microseconds>(system_clock::now().time_since_epoch()).count(); };
  Recorded recorded;
  recorded.history.begins(1, kind_of(1));
  const auto before = wall_us();
  recorded.enter(1);
  std::this_thread::sleep_for(milliseconds(30));
  recorded.complete(1);
  const auto after = wall_us();
  std::this_thread::sleep_for(milliseconds(30));
  const std::vector<RecordedCall> calls = recorded.history.last(1);
  const TickScale::Now now = recorded.history.now();
  const auto distance = [&now](std::uint64_t ticks, auto wall) {
    return std::abs(static_cast<double>(now.wall_us(ticks)) - static_cast<double>(wall));
  };
  return std::max(distance(calls.at(0).ticks.entered, before), distance(calls.at(0).ticks.completed, after));
}

TEST(CallTimes, AreTimesOfTheWallClock) {
  double least = distance_from_wall_clock();  // more where this thread was stopped between the two
  for (int tries = 1; tries < 5 && least > 3000; ++tries) least = std::min(least, distance_from_wall_clock());
  EXPECT_LE(least, 3000);
}

TEST(CallTimes, CanBeReadWhileTheyAreWritten) {
  Recorded recorded;
  recorded.history.begins(1, kind_of(1));
  std::atomic<bool> over{false};
  std::thread writer([&] {
    const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(300);
    for (std::uint32_t s = 1; s % 4096 != 0 || std::chrono::steady_clock::now() < until; ++s) {
      recorded.enter(s);
      recorded.complete(s);
    }
    over = true;
  });
  bool ordered = true;
  while (!over) {
    std::uint64_t before = 0;
    for (const RecordedCall& call : recorded.history.last(CallTimes::kKept)) {
      ordered = ordered && call.ticks.entered > before;
      before = call.ticks.entered;
    }
  }
  writer.join();
  EXPECT_TRUE(ordered);
}

TEST(CallHistory, SaysForWhomACallWaitsUntilItGoesOn) {
  CallHistory history;
  EXPECT_FALSE(history.waiting());
  enter(history, 1);
  history.waits({.sequence = 1, .peer = 5, .step = 7, .takes = 1, .since_ns = 1234});
  const auto wait = history.waiting();
  ASSERT_TRUE(wait);
  EXPECT_EQ(wait->peer, 5);
  EXPECT_EQ(wait->step, 7);
  EXPECT_EQ(wait->takes, 1u);
  EXPECT_EQ(wait->since_ns, 1234);
  history.waits_no_more();
  EXPECT_FALSE(history.waiting());
  history.waits({.sequence = 1, .peer = 0});
  EXPECT_TRUE(history.waiting());
  history.completed(1);
  EXPECT_FALSE(history.waiting());
}

}  // namespace
}  // namespace tutti::internal
