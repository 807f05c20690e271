#include "runtime/stall_detector.h"

#include <gtest/gtest.h>

namespace tutti::internal {
namespace {

using namespace std::chrono_literals;

class Stall : public testing::Test {
 protected:
  // Nothing has moved for so long since the last look.
  bool look_after(StallDetector::Clock::duration time) {
    now_ += time;
    return stall_.look(moves_, now_, 1s);
  }
  StallDetector stall_;
  StallDetector::Clock::time_point now_{1h};
  std::uint64_t moves_ = 7;
};

TEST_F(Stall, CountsOnlyWhileNothingMoves) {
  EXPECT_FALSE(look_after(0s));
  EXPECT_TRUE(look_after(300ms));
  EXPECT_TRUE(look_after(300ms));
  EXPECT_EQ(stall_.waited(), 600ms);
  ++moves_;
  EXPECT_FALSE(look_after(100ms));
  EXPECT_EQ(stall_.waited(), 0s);
  EXPECT_TRUE(look_after(100ms));
  EXPECT_EQ(stall_.waited(), 100ms);
}

TEST_F(Stall, CountsNoMoreThanAGapOfTimeInWhichNobodyLooked) {
  look_after(0s);
  look_after(1h);
  EXPECT_EQ(stall_.waited(), 1s);
}

TEST_F(Stall, AsksTheFirstTimeAfterAWhileThenAfterTwiceAsLongAndAtLeastOnceASecond) {
  look_after(0s);
  std::vector<StallDetector::Clock::duration> asked;
  for (int i = 0; i < 400; ++i) {
    look_after(10ms);
    if (stall_.is_time_to_ask(100ms, 1s, false)) asked.push_back(stall_.waited());
  }
  EXPECT_EQ(asked, (std::vector<StallDetector::Clock::duration>{100ms, 200ms, 400ms, 800ms, 1600ms, 2600ms, 3600ms}));
}

TEST_F(Stall, AsksAtOnceWhenThePeerHasLeftAndSoonAgain) {
  look_after(0s);
  std::vector<StallDetector::Clock::duration> asked;
  for (int i = 0; i < 100; ++i) {
    look_after(10ms);
    if (stall_.is_time_to_ask(100ms, 1s, stall_.waited() > 800ms)) asked.push_back(stall_.waited());
  }
  EXPECT_EQ(asked,
            (std::vector<StallDetector::Clock::duration>{100ms, 200ms, 400ms, 800ms, 810ms, 860ms, 910ms, 960ms}));
}

TEST_F(Stall, WarnsOnceForEachWait) {
  for (int wait = 0; wait < 2; ++wait) {
    look_after(0s);
    look_after(500ms);
    EXPECT_FALSE(stall_.is_time_to_warn(500ms));
    look_after(1ms);
    EXPECT_TRUE(stall_.is_time_to_warn(500ms));
    EXPECT_FALSE(stall_.is_time_to_warn(500ms));
    ++moves_;
  }
}

TEST_F(Stall, APeerThatComesBackHasNotLeft) {
  look_after(0s);
  look_after(100ms);
  EXPECT_FALSE(stall_.sends_no_more_for(true, 200ms));
  look_after(200ms);
  EXPECT_FALSE(stall_.sends_no_more_for(true, 200ms));
  EXPECT_FALSE(stall_.sends_no_more_for(false, 200ms));  // another peer is waited for
  look_after(200ms);
  EXPECT_FALSE(stall_.sends_no_more_for(true, 200ms));
  look_after(201ms);
  EXPECT_TRUE(stall_.sends_no_more_for(true, 200ms));
}

TEST_F(Stall, ALossCountsFromTheLookThatFirstSawIt) {
  look_after(0s);
  look_after(500ms);
  EXPECT_FALSE(stall_.is_lost_for(false, 200ms));
  EXPECT_FALSE(stall_.is_lost_for(true, 200ms));
  look_after(200ms);
  EXPECT_FALSE(stall_.is_lost_for(true, 200ms));
  look_after(1ms);
  EXPECT_TRUE(stall_.is_lost_for(true, 200ms));
}

}  // namespace
}  // namespace tutti::internal
