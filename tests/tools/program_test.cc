// What all commands have in common.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tools/shell.h"
#include "tutti/version.h"

namespace tutti::internal::tools {
namespace {

using testing::HasSubstr;

TEST(Tutti, HelpIsNoError) {
  EXPECT_EQ(shell("$TUTTI --help").status, 0);
  for (const char* name : {"run", "bench", "train", "plan"}) {
    EXPECT_EQ(shell(std::string("$TUTTI ") + name + " --help").status, 0) << name;
  }
}

TEST(Tutti, SaysItsVersion) {
  const Result run = shell("$TUTTI --version");
  EXPECT_EQ(run.status, 0);
  EXPECT_THAT(run.out, testing::MatchesRegex("tutti " TUTTI_VERSION ", protocol [0-9]+\n"));
  EXPECT_EQ(fmt::format("{}.{}.{}", TUTTI_VERSION_MAJOR, TUTTI_VERSION_MINOR, TUTTI_VERSION_PATCH), TUTTI_VERSION);
}

TEST(Tutti, AnUnknownCommandIsWrongInput) {
  EXPECT_EQ(shell("$TUTTI").status, 2);
  const Result run = shell("$TUTTI frobnicate");
  EXPECT_EQ(run.status, 2);
  EXPECT_THAT(run.err, HasSubstr("frobnicate"));
}

TEST(Tutti, HelpThatCannotBeWrittenIsAFailure) {
  for (const char* words : {"--help", "run --help", "plan --help"}) {
    const Result run = shell(std::string("$TUTTI ") + words + " > /dev/full");
    EXPECT_EQ(run.status, 1) << words;
    EXPECT_THAT(run.err, HasSubstr("cannot write the output: No space left on device")) << words;
  }
}

TEST(Tutti, WhatCannotBeSaidOnStderrIsSaidByTheStatus) {
  EXPECT_EQ(shell("$TUTTI bogus 2> /dev/full").status, 2);
  EXPECT_EQ(shell("$TUTTI run -n 2 /no/such/program 2> /dev/full").status, 2);
  EXPECT_EQ(shell("$TUTTI --help > /dev/full 2>&1").status, 1);
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // which need more address space than that
TEST(Tutti, MemoryThatRunsOutIsSaidInWords) {
  const Result run = shell("ulimit -v 100000; $TUTTI plan ring -n 512 --verify");
  EXPECT_EQ(run.status, 1);
  EXPECT_EQ(run.out, "");
  EXPECT_THAT(run.err, testing::StartsWith("tutti plan: the system gives this process no more memory: ask for less"));
}
#endif

TEST(Tutti, DescriptorsThatAreClosedAtTheStartLeadNowhere) {
  const Result run = shell(
      "folder=$(mktemp -d); cd $folder; "
      "$TUTTI run -n 2 sh -c 'for fd in 0 1 2; do readlink /proc/$$/fd/$fd; done > $TUTTI_RANK' <&- 2>&- >&-; "
      "status=$?; cat 0 1; rm -r $folder; exit $status");
  EXPECT_EQ(run.status, 0);
  // The shell has put its own file in the place of stdout.
  EXPECT_THAT(run.out, testing::MatchesRegex("(/dev/null\n[^\n]*\n/dev/null\n){2}"));
}

}  // namespace
}  // namespace tutti::internal::tools
