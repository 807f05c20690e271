// What ranks report to `tutti run` beside their exit status.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "tools/shell.h"

namespace tutti::internal::tools {
namespace {

using testing::HasSubstr;

constexpr const char* kSaid = "tutti run: rank 1 ended badly, which its exit status may not show: ";

TEST(RunReports, ARankThatReportsItsFailureFailsTheJobThoughItExitsWith0) {
  const Result run = shell("$TUTTI run -n 2 sh -c '[ $TUTTI_RANK = 0 ] || exec " REPORTING_RANK " \"other calls\"'");
  EXPECT_EQ(run.status, 1);
  EXPECT_EQ(run.err, std::string(kSaid) + "other calls\n");
}

TEST(RunReports, OnlyTheFirstReportIsSaid) {
  const std::string report = REPORTING_RANK " ";
  const Result run = shell("$TUTTI run -n 2 sh -c '[ $TUTTI_RANK = 0 ] && exit 0; " + report + "a; " + report + "b'");
  EXPECT_EQ(run.status, 1);
  EXPECT_EQ(run.err, std::string(kSaid) + "a\n");
}

TEST(RunReports, AReportIsOneLineThatEndsWhereADatagramMay) {
  const Result run = shell("$TUTTI run -n 1 " REPORTING_RANK " \"$(printf 'two\\nlines'; printf '%2000s' .)\"");
  EXPECT_EQ(run.status, 1);
  EXPECT_THAT(run.err, HasSubstr(": two lines   "));
  EXPECT_LT(run.err.size(), 1200u);
}

TEST(RunReports, AnAttemptWithAReportIsStartedAgain) {
  const Result run = shell("$TUTTI run -n 1 --max-restarts 1 sh -c 'echo begun; exec " REPORTING_RANK " words'");
  EXPECT_EQ(run.status, 1);
  EXPECT_EQ(run.out, "begun\nbegun\n");
  EXPECT_THAT(run.err, HasSubstr("starting all ranks again (1 of 1)"));
}

TEST(RunReports, AReportOfOneAttemptDoesNotFailTheNext) {
  const Result run = shell(
      "mark=$(mktemp -u); $TUTTI run -n 1 --max-restarts 1 sh -c '[ -e '$mark' ] && exit 0; touch '$mark'; "
      "exec " REPORTING_RANK " words'; status=$?; rm $mark; exit $status");
  EXPECT_EQ(run.status, 0) << run.err;
}

TEST(RunReports, ARankReportsToTheLauncherThatStartedIt) {
  const Result run = shell("$TUTTI run -n 1 $TUTTI run -n 1 " REPORTING_RANK " words");
  EXPECT_EQ(run.status, 1);
  EXPECT_EQ(run.err,
            "tutti run: rank 0 ended badly, which its exit status may not show: words\n"
            "tutti run: rank 0 exited with status 1\n");
}

TEST(RunReports, WhatAnotherUserReportsIsIgnored) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can become another user";
  const Result run = shell("$TUTTI run -n 1 " REPORTING_RANK " words 65534");
  EXPECT_EQ(run.status, 0);
  EXPECT_EQ(run.err, "");
}

TEST(RunReports, WithoutALauncherAReportIsNoError) {
  EXPECT_EQ(shell(REPORTING_RANK " words").status, 0);
  EXPECT_EQ(shell("TUTTI_LAUNCHER=nobody-listens-here " REPORTING_RANK " words").status, 0);
  EXPECT_EQ(shell("TUTTI_LAUNCHER=$(printf '%0300d' 1) " REPORTING_RANK " words").status, 0);
}

}  // namespace
}  // namespace tutti::internal::tools
