// Which signals end a job of `tutti run`, and how it takes them.
#include <gtest/gtest.h>
#include <signal.h>

#include <string>

#include "tools/shell.h"

namespace tutti::internal::tools {
namespace {

// As ^C on a terminal, in the order that is hard: the launcher has not run when the rank has died of it.
TEST(RunSignals, ARankThatDiesOfTheGroupsSignalIsNotStartedAgain) {
  const std::string sleep = unique_sleep();
  const pid_t launcher = start("exec setsid $TUTTI run -n 1 --max-restarts 5 " + sleep + " 2>/dev/null");
  EXPECT_TRUE(reaches(sleep, 3));  // the launcher, its guardian, the rank
  kill(launcher, SIGSTOP);
  kill(-launcher, SIGINT);
  EXPECT_TRUE(reaches(sleep, 1));
  kill(launcher, SIGCONT);
  EXPECT_EQ(wait_for(launcher), 1);
}

TEST(RunSignals, SignalsThatAreIgnoredFromTheStartDoNotEndAJob) {
  const Result run = shell(
      "trap '' HUP INT; export launcher=$$; exec $TUTTI run -n 1 sh -c 'kill -HUP $launcher; kill -INT $launcher; "
      "sleep 0.3'");
  EXPECT_EQ(run.status, 0);
  EXPECT_EQ(run.err, "");
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // which would have to be loaded first
TEST(RunSignals, AJobEndsThoughARankDoesNotBegin) {
  for (const int signal : {SIGTERM, SIGKILL}) {
    const std::string sleep = unique_sleep();
    const pid_t launcher = start("exec env LD_PRELOAD=" STOPPING_EXECVE " $TUTTI run -n 1 " + sleep + " 2>/dev/null");
    EXPECT_TRUE(reaches("run -n 1 " + sleep, 3));  // the launcher, its guardian, the rank, which is still a copy of it
    kill(launcher, signal);
    EXPECT_TRUE(reaches(sleep, 0)) << "signal " << signal;
    if (count_processes(sleep) > 0) kill(launcher, SIGKILL);
    wait_for(launcher);
  }
}
#endif

TEST(RunSignals, AJobEndsThoughEndsOfChildrenWereIgnored) {
  EXPECT_EQ(shell("timeout -s KILL 20 env --ignore-signal=CHLD $TUTTI run -n 2 true").status, 0);
}

}  // namespace
}  // namespace tutti::internal::tools
