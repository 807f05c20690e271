#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "control/control.h"
#include "types/call.h"

namespace tutti::internal {
namespace {

Tag kind_of(std::uint32_t sequence) { return Tag{{sequence % 1000 * 3ull + 1, sequence * 7ull + 2}}; }
Tag tag_of(std::uint32_t sequence) { return Call::numbered(kind_of(sequence), sequence); }

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

TEST(CallHistory, RemembersTheLastSixteenKindsOfCalls) {
  CallHistory history;
  for (std::uint32_t s = 1; s <= 100; ++s) {
    enter(history, s);
    for (std::uint32_t asked = 1; asked <= s + 1; ++asked) {
      Tag tag;
      ASSERT_EQ(history.at(asked, tag), asked <= s && asked + 16 > s) << asked << " at " << s;
      if (asked <= s && asked + 16 > s) {
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
    for (std::uint32_t s = 1; s % 1024 != 0 || std::chrono::steady_clock::now() < until; ++s) {
      enter(history, s);
      history.completed(s);
    }
    over = true;
  });
  bool whole = true;
  while (!over) {
    // The oldest that are kept: they are being overwritten just now.
    const auto newest = static_cast<std::uint32_t>(history.last_completed().word[0] >> 32);
    for (std::uint32_t asked = newest - 16; asked != newest - 10; ++asked)
      if (Tag tag; history.at(asked, tag)) whole = whole && tag == tag_of(asked);
  }
  writer.join();
  EXPECT_TRUE(whole);
}

}  // namespace
}  // namespace tutti::internal
