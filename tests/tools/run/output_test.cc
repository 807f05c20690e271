// What `tutti run --tag` makes of the ranks' output, and of who reads it.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <string>
#include <thread>
#include <utility>

#include "brief.h"
#include "tools/shell.h"

namespace tutti::internal::tools {
namespace {

using testing::HasSubstr;

// A pipe that is read when a test says so, and the command that writes to it.
class RunOutput : public testing::Test {
 protected:
  RunOutput() {
    EXPECT_EQ(pipe(ends_), 0);
    fcntl(ends_[0], F_SETFD, FD_CLOEXEC);
  }
  ~RunOutput() override {
    if (pid_ > 0) kill(pid_, SIGKILL);
    if (pid_ > 0) wait_for(pid_);
    if (ends_[0] >= 0) close(ends_[0]);
  }

  void start_writing(const std::string& command, const std::string& errors = "/dev/null") {
    pid_ = start("exec >&" + std::to_string(ends_[1]) + " 2>" + errors + "; exec " + command);
    close(ends_[1]);
  }

  bool fills() const {
    for (int tries = 0; tries < 2000; ++tries) {
      int bytes = 0;
      if (ioctl(ends_[0], FIONREAD, &bytes) == 0 && bytes >= 30000) return true;
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    return false;
  }

  // At least `bytes`, or what comes until the end, or until nothing more does for a long while.
  std::string read_output(std::size_t bytes = std::string::npos) const {
    std::string text;
    char chunk[65536];
    for (pollfd there{ends_[0], POLLIN, 0}; text.size() < bytes && poll(&there, 1, 20000) == 1;) {
      const ssize_t count = read(ends_[0], chunk, sizeof chunk);
      if (count <= 0) break;
      text.append(chunk, static_cast<std::size_t>(count));
    }
    return text;
  }

  int wait_for_end() { return wait_for(std::exchange(pid_, -1)); }

  // The pipe is closed then: a job that waits for its reader after all ends with the test.
  int wait_for_end_of(const std::string& words) {
    EXPECT_TRUE(reaches(words, 0));
    close(std::exchange(ends_[0], -1));
    return wait_for_end();
  }

  int ends_[2];
  pid_t pid_ = -1;
};

TEST_F(RunOutput, ATerminatedJobEndsThoughNobodyReads) {
  const std::string words = unique_sleep();
  start_writing("$TUTTI run -n 2 --tag yes '" + words + "'");
  ASSERT_TRUE(fills());
  kill(pid_, SIGTERM);
  EXPECT_EQ(wait_for_end_of(words), 1);
}

TEST_F(RunOutput, AKilledLauncherTakesItsRanksAlongThoughNobodyReads) {
  const std::string words = unique_sleep();
  start_writing("$TUTTI run -n 2 --tag yes '" + words + "'");
  ASSERT_TRUE(fills());
  kill(pid_, SIGKILL);
  EXPECT_EQ(wait_for_end_of(words), 128 + SIGKILL);
}

// Nor what the command itself has to say.
TEST_F(RunOutput, ATerminatedJobEndsThoughItsErrorsAreNotReadEither) {
  const std::string words = unique_sleep();
  start_writing("$TUTTI run -n 2 --tag yes '" + words + "'", "&1");
  ASSERT_TRUE(fills());
  kill(pid_, SIGTERM);
  EXPECT_EQ(wait_for_end_of(words), 1);
}

TEST_F(RunOutput, ALauncherThatLosesItsGuardianEndsThoughNobodyReads) {
  const std::string words = unique_sleep();
  start_writing("$TUTTI run -n 2 yes '" + words + "'", "&1");
  ASSERT_TRUE(fills());
  const std::string launcher = std::to_string(pid_);
  std::ifstream children("/proc/" + launcher + "/task/" + launcher + "/children");
  pid_t guardian = 0;
  ASSERT_TRUE(children >> guardian);
  kill(guardian, SIGKILL);
  EXPECT_EQ(wait_for_end_of(words), 1);
}

// Ranks write whole lines. Else one might pause within a line, and have it ended by the other's.
TEST_F(RunOutput, AReaderWhoIsSlowGetsAllOfIt) {
  start_writing("$TUTTI run -n 2 --tag sh -c 'i=0; while [ $i -lt 60000 ]; do i=$((i+1)); echo $i; done'");
  ASSERT_TRUE(fills());
  std::string text;
  for (std::string piece = read_output(65536); !piece.empty(); piece = read_output(65536)) {
    text += piece;
    std::this_thread::sleep_for(std::chrono::milliseconds(50));  // for some of it each rank waits longer than 0.1 s
  }
  EXPECT_EQ(std::ranges::count(text, '\n'), 120000);
  EXPECT_THAT(text, HasSubstr("[1] 60000\n"));
  EXPECT_EQ(wait_for_end(), 0);
}

TEST_F(RunOutput, ALineThatIsNotFinishedIsShown) {
  start_writing("$TUTTI run -n 1 --tag sh -c 'printf name?; exec " + unique_sleep() + "'");
  EXPECT_EQ(read_output(9), "[0] name?");
}

TEST_F(RunOutput, ALineThatIsToBeOverwrittenIsShownWithItsTag) {
  start_writing("$TUTTI run -n 1 --tag sh -c 'printf \"10%%\\r20%%\\r\\nmore\\r\"; exec " + unique_sleep() + "'");
  EXPECT_EQ(read_output(26), "[0] 10%\r[0] 20%\r\n[0] more\r");
}

// $1 comes into the file that the output goes to.
constexpr const char* kAwait = "await() { until grep -q $1 $file; do sleep 0.02; done; }; ";

TEST_F(RunOutput, ALineThatIsNotFinishedGoesOnUnlessAnotherCameBetween) {
  const Result run =
      shell(std::string("export file=$(mktemp); timeout -s KILL 20 $TUTTI run -n 2 --tag sh -c '") + kAwait +
            "if [ $TUTTI_RANK = 0 ]; then printf a; await c; printf b; await d; echo e; "
            "else await a; echo c; await b; printf d; fi' > $file; cat $file; rm $file");
  EXPECT_EQ(run.out, "[0] a\n[1] c\n[0] b\n[1] d\n[0] e\n");
}

TEST_F(RunOutput, OutputAndErrorsOfOneFileDoNotShareALine) {
  const Result run =
      shell(std::string("export file=$(mktemp); timeout -s KILL 20 $TUTTI run -n 1 --tag sh -c '") + kAwait +
            "printf a; await a; echo b >&2; await b; echo c' > $file 2>&1; cat $file; rm $file");
  EXPECT_EQ(run.out, "[0] a\n[0] b\n[0] c\n");
}

TEST_F(RunOutput, ALongLineIsPassedOnInTaggedPieces) {
  const Result run = shell("$TUTTI run -n 1 --tag sh -c 'head -c 65536 /dev/zero; echo; head -c 200000 /dev/zero'");
  const auto line = [](std::size_t length) { return "[0] " + std::string(length, '\0') + "\n"; };
  EXPECT_EQ(run.out, line(65536) + line(65536) + line(65536) + line(65536) + line(200000 - 3 * 65536));
}

TEST_F(RunOutput, WhatIsShownOfALongLineCounts) {
  const Result run =
      shell(std::string("export file=$(mktemp); timeout -s KILL 20 $TUTTI run -n 1 --tag sh -c '") + kAwait +
            "letters() { head -c $1 /dev/zero | tr \"\\0\" a; }; letters 40000; await a; letters 25540' > $file; "
            "cat $file; rm $file");
  EXPECT_EQ(run.out, "[0] " + std::string(65536, 'a') + "\n[0] aaaa\n");
}

// Also if the write fails just when the ranks have ended: one job in a hundred or so.
TEST_F(RunOutput, OutputThatCannotBeWrittenFailsTheJobInWords) {
  for (int jobs = 0; jobs < (kBrief ? 20 : 200) && !HasFailure(); ++jobs) {
    const Result run = shell("$TUTTI run -n 2 --tag echo words > /dev/full");
    EXPECT_EQ(run.status, 1);
    EXPECT_THAT(run.err, HasSubstr("tutti run: cannot write the output of the ranks: No space left on device\n"));
  }
}

// It has a second, in which it may get no processor: so it may try again.
TEST_F(RunOutput, WhatALeftOverChildWritesIsPassedOn) {
  std::string out;
  auto took = std::chrono::steady_clock::duration::max();
  for (int tries = 0; tries < 3 && !out.ends_with("[0] 30000\n") && took >= std::chrono::seconds(1); ++tries) {
    const auto begin = std::chrono::steady_clock::now();
    const Result run = shell("$TUTTI run -n 1 --tag sh -c '(seq 30000) &'");
    EXPECT_EQ(run.status, 0);
    out = run.out;
    took = std::chrono::steady_clock::now() - begin;
  }
  EXPECT_THAT(out, testing::EndsWith("[0] 30000\n"));
}

}  // namespace
}  // namespace tutti::internal::tools
