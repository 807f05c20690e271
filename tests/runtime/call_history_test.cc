#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "runtime/control.h"

namespace tutti::runtime {
namespace {

Tag tag_of(std::uint32_t sequence) { return Tag{{sequence * 3ull + 1, sequence * 7ull + 2}}; }

TEST(CallHistory, KnowsNothingBeforeTheFirstCall) {
  const CallHistory history;
  Tag tag;
  EXPECT_FALSE(history.at(0, tag));
  EXPECT_FALSE(history.at(1, tag));
  EXPECT_FALSE(history.is_ahead_of(1));
  EXPECT_EQ(history.last_completed(), Tag{});
}

TEST(CallHistory, RemembersTheLastSixteenCalls) {
  CallHistory history;
  for (std::uint32_t s = 1; s <= 100; ++s) {
    history.entered(s, tag_of(s));
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

TEST(CallHistory, SaysWhichCallWasCompletedLast) {
  CallHistory history;
  history.entered(1, tag_of(1));
  EXPECT_EQ(history.last_completed(), Tag{});
  history.completed(1);
  history.entered(2, tag_of(2));
  EXPECT_EQ(history.last_completed(), tag_of(1));
}

TEST(CallHistory, GoesOnWhenSequencesWrapAround) {
  CallHistory history;
  history.entered(0xffffffff, tag_of(5));
  EXPECT_TRUE(history.is_ahead_of(0xfffffff0));
  EXPECT_FALSE(history.is_ahead_of(3));
}

TEST(CallHistory, NeverShowsHalfOfACall) {
  CallHistory history;
  std::atomic<bool> over{false};
  std::thread writer([&] {
    const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(300);
    for (std::uint32_t s = 1; s % 1024 != 0 || std::chrono::steady_clock::now() < until; ++s) {
      history.entered(s, tag_of(s));
      history.completed(s);
    }
    over = true;
  });
  bool whole = true;
  while (!over) {
    // The oldest that are kept: they are being overwritten just now.
    const auto newest = static_cast<std::uint32_t>((history.last_completed().word[0] - 1) / 3);
    for (std::uint32_t asked = newest - 16; asked != newest - 10; ++asked)
      if (Tag tag; history.at(asked, tag)) whole = whole && tag == tag_of(asked);
  }
  writer.join();
  EXPECT_TRUE(whole);
}

}  // namespace
}  // namespace tutti::runtime
