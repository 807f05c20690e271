// How a rank waits: what it does after how many looks, and what it can say of its looks at the clock.
#include "runtime/backoff_policy.h"

#include <gtest/gtest.h>

#include <thread>

namespace tutti::internal {
namespace {

using namespace std::chrono_literals;

// Goes on until it has looked at the clock.
Pause next_look(BackoffPolicy& backoff) {
  for (bool looked = false;;) {
    const Pause pause = backoff.next(looked);
    if (looked) return pause;
  }
}

// What a crowded rank that may yield does at a look like the last one. A machine with other work may hold this thread
// up for longer than a rank yields; then it sleeps.
Pause yield_or_sleep(const BackoffPolicy& backoff) {
  const Look& look = backoff.look();
  return look.at - look.since < BackoffPolicy::kYieldFor ? Pause::yield : Pause::sleep;
}

TEST(BackoffPolicy, ARankThatTurnsOutToBeCrowdedYieldsAtOnce) {
  BackoffPolicy backoff(false);
  EXPECT_EQ(next_look(backoff), Pause::spin);
  backoff.set_crowded(true, {});
  bool looked = false;
  const Pause pause = backoff.next(looked);
  EXPECT_TRUE(looked);
  EXPECT_EQ(pause, yield_or_sleep(backoff));
}

TEST(BackoffPolicy, TimeBetweenTwoLooksIsTimeAway) {
  BackoffPolicy backoff(false);
  next_look(backoff);
  EXPECT_EQ(backoff.look().away, 0s) << "there was no look before";
  std::this_thread::sleep_for(1ms);
  next_look(backoff);
  EXPECT_GE(backoff.look().away, 1ms);
  EXPECT_EQ(backoff.look().away, backoff.now() - backoff.look().since);
  backoff.reset();
  std::this_thread::sleep_for(1ms);
  next_look(backoff);
  EXPECT_EQ(backoff.look().away, 0s) << "that was another wait";
}

TEST(BackoffPolicy, TimeAsleepIsNotTimeAway) {
  BackoffPolicy backoff(true);
  while (next_look(backoff) != Pause::sleep) std::this_thread::sleep_for(1ms);
  std::this_thread::sleep_for(1ms);
  EXPECT_EQ(next_look(backoff), Pause::sleep);
  EXPECT_EQ(backoff.look().away, 0s);
}

TEST(BackoffPolicy, ARankThatShouldNotYieldSleepsAtOnce) {
  BackoffPolicy backoff(true, BackoffPolicy::Clock::now() + 1h);
  EXPECT_EQ(next_look(backoff), Pause::sleep);
  backoff.set_crowded(true, {});
  const Pause pause = next_look(backoff);
  EXPECT_EQ(pause, yield_or_sleep(backoff));
}

TEST(BackoffPolicy, AYieldIsLookedBackAt) {
  BackoffPolicy backoff(true);
  EXPECT_EQ(next_look(backoff), Pause::yield);
  std::this_thread::sleep_for(1ms);
  EXPECT_TRUE(backoff.look_back());
  EXPECT_GE(backoff.look().away, 1ms);
}

TEST(BackoffPolicy, AShortWaitIsNotLookedBackAt) {
  BackoffPolicy backoff(false);
  EXPECT_FALSE(backoff.look_back());
  next_look(backoff);
  EXPECT_FALSE(backoff.look_back());
  for (int i = 0; i < 10; ++i) next_look(backoff);
  std::this_thread::sleep_for(1ms);
  EXPECT_TRUE(backoff.look_back());
  EXPECT_GE(backoff.look().away, 1ms);
}

}  // namespace
}  // namespace tutti::internal
