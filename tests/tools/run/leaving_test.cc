// How a job of `tutti run` ends whose ranks leave in one way or another.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tools/shell.h"

namespace tutti::internal::tools {
namespace {

using testing::HasSubstr;
using testing::Not;

Result run(int ranks, const std::string& transport, const std::string& way) {
  // Whoever waits for ever says for whom before this test is ended from outside.
  return shell("TUTTI_TIMEOUT=20 TUTTI_JOIN_TIMEOUT=20 TUTTI_TRANSPORT=" + transport + " timeout 40 $TUTTI run -n " +
               std::to_string(ranks) + " " LEAVING_RANK " '" + way + "'");
}

TEST(RunLeaving, RanksThatHaveCompletedEndWell) {
  for (const std::string transport : {"shm", "tcp"})
    for (const std::string way : {"exit", "quick_exit", "static", "started", "return"})
      for (int i = 0; i < 3; ++i) {
        const Result result = run(8, transport, way);
        EXPECT_EQ(result.status, 0) << transport << ", " << way << ": " << result.err;
        EXPECT_EQ(result.err, "") << transport << ", " << way;
      }
}

TEST(RunLeaving, ARankThatThrowsFromMainIsAllThatFails) {
  for (const std::string transport : {"shm", "tcp"}) {
    const Result result = run(8, transport, "rank 0 throws");
    EXPECT_EQ(result.status, 1);
    EXPECT_THAT(result.err, HasSubstr("that nobody catches"));
    EXPECT_THAT(result.err, Not(HasSubstr("was lost"))) << transport;
  }
}

// Each of the ranks returns 0: the launcher hears of it from one that leaves.
TEST(RunLeaving, CallsThatDifferMakeTheStatusOne) {
  for (const std::string transport : {"shm", "tcp"})
    for (const int ranks : {2, 4})
      for (const std::string way : {"own roots", "own roots, finalized", "own roots, exit",
                                    "own roots of a thread, exit", "started own roots", "one call more"}) {
        const Result result = run(ranks, transport, way);
        EXPECT_EQ(result.status, 1) << transport << ", " << ranks << " ranks, " << way;
        EXPECT_THAT(result.err, HasSubstr("made different calls")) << way;
      }
}

TEST(RunLeaving, ACallThatIsMadeWhileTheProcessExitsFailsAtOnce) {
  const Result result = run(2, "shm", "call while exiting");
  EXPECT_EQ(result.status, 0) << result.err;
  EXPECT_THAT(result.err, HasSubstr("has left its job, as its process is exiting"));
}

TEST(RunLeaving, AFailureThatAWorkDroppedMakesTheStatusOne) {
  const Result result = run(2, "shm", "dropped work");
  EXPECT_EQ(result.status, 1);
  EXPECT_THAT(result.err, HasSubstr("made different calls"));
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // which would have to be loaded first
// Rank 1 ends after the launcher has asked in vain for another end, and before it takes the signals that have come.
TEST(RunLeaving, AnEndIsNotMissedWhileTheLauncherTakesAnother) {
  const Result result =
      shell("LD_PRELOAD=" SLOW_WAITPID " timeout -s KILL 20 $TUTTI run -n 2 sh -c 'test $TUTTI_RANK = 0 || sleep 0.3'");
  EXPECT_EQ(result.status, 0);
  EXPECT_EQ(result.err, "");
}
#endif

}  // namespace
}  // namespace tutti::internal::tools
