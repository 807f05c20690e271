#include "transport/sleeper.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <thread>

namespace tutti::internal {
namespace {

using namespace std::chrono_literals;

std::chrono::steady_clock::duration slept(Sleeper& sleeper, std::chrono::microseconds limit) {
  const auto start = std::chrono::steady_clock::now();
  sleeper.sleep(limit);
  return std::chrono::steady_clock::now() - start;
}

TEST(Sleeper, SleepsUntilItsLimit) {
  Sleeper sleeper;
  EXPECT_GE(slept(sleeper, 20ms), 19ms);
  EXPECT_GE(slept(sleeper, 500us), 400us) << "rounded up, not down to a spin";
}

TEST(Sleeper, ARingBeforeSleepIsNotLostAndWakesOnce) {
  Sleeper sleeper;
  sleeper.ring();
  sleeper.ring();
  EXPECT_LT(slept(sleeper, 20s), 10s);
  EXPECT_GE(slept(sleeper, 20ms), 19ms);
}

TEST(Sleeper, IsWokenByAnotherThreadAndThroughItsBell) {
  Sleeper sleeper;
  for (const bool by_bell : {false, true}) {
    std::thread other([&] {
      std::this_thread::sleep_for(5ms);
      const std::uint64_t one = 1;
      if (!by_bell) {
        sleeper.ring();
      } else {
        ASSERT_EQ(write(sleeper.bell(), &one, sizeof one), 8);
      }
    });
    EXPECT_LT(slept(sleeper, 20s), 10s);
    other.join();
  }
}

TEST(Sleeper, WakesForEachNewsOfAWatchedSocketAndNotForOldOnes) {
  int ends[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends), 0);
  {
    Sleeper sleeper;
    sleeper.watch(ends[0]);
    sleeper.sleep(0us);  // that it can be written to is news
    EXPECT_GE(slept(sleeper, 20ms), 19ms);
    for (int i = 0; i < 2; ++i) {
      ASSERT_EQ(write(ends[1], "x", 1), 1);
      EXPECT_LT(slept(sleeper, 20s), 10s);
      EXPECT_GE(slept(sleeper, 20ms), 19ms) << "unread bytes are old news";
    }
    sleeper.unwatch(ends[0]);
    ASSERT_EQ(write(ends[1], "x", 1), 1);
    EXPECT_GE(slept(sleeper, 20ms), 19ms);
  }
  close(ends[0]);
  close(ends[1]);
}

}  // namespace
}  // namespace tutti::internal
