// How a rank waits: what it does after how many looks, and what it can say of its looks at the clock.
#include "runtime/patience.h"

#include <gtest/gtest.h>

#include <thread>

namespace tutti::runtime {
namespace {

using namespace std::chrono_literals;

// Goes on until it has looked at the clock.
Pause next_look(Patience& patience) {
  for (bool looked = false;;) {
    const Pause pause = patience.next(looked);
    if (looked) return pause;
  }
}

TEST(Patience, ARankThatTurnsOutToBeCrowdedYieldsAtOnce) {
  Patience patience(false);
  EXPECT_EQ(next_look(patience), Pause::spin);
  patience.set_crowded(true, {});
  bool looked = false;
  EXPECT_EQ(patience.next(looked), Pause::yield);
  EXPECT_TRUE(looked);
}

TEST(Patience, TimeBetweenTwoLooksIsTimeAway) {
  Patience patience(false);
  next_look(patience);
  EXPECT_EQ(patience.look().away, 0s) << "there was no look before";
  std::this_thread::sleep_for(1ms);
  next_look(patience);
  EXPECT_GE(patience.look().away, 1ms);
  EXPECT_EQ(patience.look().away, patience.now() - patience.look().since);
  patience.reset();
  std::this_thread::sleep_for(1ms);
  next_look(patience);
  EXPECT_EQ(patience.look().away, 0s) << "that was another wait";
}

TEST(Patience, TimeAsleepIsNotTimeAway) {
  Patience patience(true);
  while (next_look(patience) != Pause::sleep) std::this_thread::sleep_for(1ms);
  std::this_thread::sleep_for(1ms);
  EXPECT_EQ(next_look(patience), Pause::sleep);
  EXPECT_EQ(patience.look().away, 0s);
}

TEST(Patience, ARankThatShouldNotYieldSleepsAtOnce) {
  Patience patience(true, Patience::Clock::now() + 1h);
  EXPECT_EQ(next_look(patience), Pause::sleep);
  patience.set_crowded(true, {});
  EXPECT_EQ(next_look(patience), Pause::yield);
}

TEST(Patience, AYieldIsLookedBackAt) {
  Patience patience(true);
  EXPECT_EQ(next_look(patience), Pause::yield);
  std::this_thread::sleep_for(1ms);
  EXPECT_TRUE(patience.look_back());
  EXPECT_GE(patience.look().away, 1ms);
}

TEST(Patience, AShortWaitIsNotLookedBackAt) {
  Patience patience(false);
  EXPECT_FALSE(patience.look_back());
  next_look(patience);
  EXPECT_FALSE(patience.look_back());
  for (int i = 0; i < 10; ++i) next_look(patience);
  std::this_thread::sleep_for(1ms);
  EXPECT_TRUE(patience.look_back());
  EXPECT_GE(patience.look().away, 1ms);
}

}  // namespace
}  // namespace tutti::runtime
