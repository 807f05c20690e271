#include "control/dump_signal.h"

#include <gtest/gtest.h>
#include <signal.h>

#include <atomic>

namespace tutti::internal {
namespace {

std::atomic<int> heard_by_program{0};
void hear(int) { ++heard_by_program; }

struct sigaction action_now() {
  struct sigaction now {};
  ::sigaction(SIGUSR2, nullptr, &now);
  return now;
}

TEST(DumpSignal, IsSeenOnceByEachRankOfTheProcess) {
  DumpSignal one(SIGUSR2), other(SIGUSR2);
  EXPECT_FALSE(one.came());
  ::raise(SIGUSR2);
  EXPECT_TRUE(one.came());
  EXPECT_FALSE(one.came());
  EXPECT_TRUE(other.came());
}

TEST(DumpSignal, LeavesTheProgramItsHandler) {
  struct sigaction own {};
  own.sa_handler = &hear;
  ::sigaction(SIGUSR2, &own, nullptr);
  heard_by_program = 0;
  {
    DumpSignal signal(SIGUSR2);
    ::raise(SIGUSR2);
    EXPECT_TRUE(signal.came());
    EXPECT_EQ(heard_by_program, 1);
  }
  EXPECT_EQ(action_now().sa_handler, &hear);
  {
    DumpSignal signal(SIGUSR2);
    own.sa_handler = SIG_IGN;
    ::sigaction(SIGUSR2, &own, nullptr);  // the program takes it meanwhile
  }
  EXPECT_EQ(action_now().sa_handler, SIG_IGN);
  own.sa_handler = SIG_DFL;
  ::sigaction(SIGUSR2, &own, nullptr);
}

TEST(DumpSignal, OfNoSignalTakesNone) {
  DumpSignal none(0);
  EXPECT_FALSE(none.came());
  EXPECT_EQ(action_now().sa_handler, SIG_DFL);
}

}  // namespace
}  // namespace tutti::internal
