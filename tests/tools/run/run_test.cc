#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <chrono>
#include <set>
#include <sstream>

#include "machine/host.h"
#include "tools/shell.h"

namespace tutti::internal::tools {
namespace {

using testing::HasSubstr;

std::multiset<std::string> lines_of(const std::string& text) {
  std::multiset<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.insert(line);
  return lines;
}

using Lines = std::multiset<std::string>;

TEST(Run, EachRankLearnsItsNumberAndTheirs) {
  const Result run = shell("$TUTTI run -n 3 sh -c 'echo $TUTTI_RANK of $TUTTI_SIZE'");
  EXPECT_EQ(run.status, 0) << run.err;
  EXPECT_EQ(lines_of(run.out), (Lines{"0 of 3", "1 of 3", "2 of 3"}));
  EXPECT_EQ(run.err, "");
}

TEST(Run, AllRanksGetOneMasterAndOneRandomSecret) {
  const auto run = [] { return lines_of(shell("$TUTTI run -n 3 sh -c 'echo $TUTTI_MASTER $TUTTI_SECRET'").out); };
  const Lines first = run(), second = run();
  ASSERT_EQ(first.size(), 3u);
  EXPECT_EQ(first.count(*first.begin()), 3u);
  EXPECT_THAT(*first.begin(), testing::MatchesRegex("127\\.0\\.0\\.1:[0-9]+ [0-9a-f]{64}"));
  EXPECT_NE(*first.begin(), *second.begin());
}

TEST(Run, ASecretThatIsGivenIsKept) {
  EXPECT_EQ(shell("TUTTI_SECRET=mine $TUTTI run -n 1 sh -c 'echo $TUTTI_SECRET'").out, "mine\n");
  EXPECT_EQ(shell("TUTTI_SECRET_FILE=/x $TUTTI run -n 1 sh -c 'echo \"$TUTTI_SECRET\"'").out, "\n");
}

TEST(Run, SeveralHostsNumberTheirRanksOneAfterTheOther) {
  const Result run = shell(
      "$TUTTI run --nnodes 3 --node-rank 1 --nproc-per-node 2 --master-addr ::1 --master-port 77 "
      "sh -c 'echo $TUTTI_RANK $TUTTI_SIZE $TUTTI_MASTER \"<$TUTTI_SECRET>\"'");
  EXPECT_EQ(lines_of(run.out), (Lines{"2 6 [::1]:77 <>", "3 6 [::1]:77 <>"})) << run.err;
}

TEST(Run, AnAddressMayStandInBrackets) {
  EXPECT_EQ(shell("$TUTTI run -n 1 --master-addr [::1] --master-port 77 sh -c 'echo $TUTTI_MASTER'").out, "[::1]:77\n");
}

TEST(Run, ArgumentsAreThePrograms) {
  EXPECT_EQ(shell("$TUTTI run -n 1 printf '%s|' a 'b c' -n --help").out, "a|b c|-n|--help|");
  EXPECT_EQ(shell("$TUTTI run -n 1 --master-port=0 --tag -- printf '%s|' a -- b").out, "[0] a|--|b|\n");
  EXPECT_EQ(shell("$TUTTI run -n 1 printf '%s|' -- a").out, shell("printf '%s|' -- a").out);
}

TEST(Run, OnlyTheFirstRankReadsWhatIsTyped) {
  const Result run = shell("echo typed | $TUTTI run -n 2 sh -c 'read word; echo $TUTTI_RANK:$word'");
  EXPECT_EQ(lines_of(run.out), (Lines{"0:typed", "1:"}));
}

// A rank that pauses between `a` and `b` has its line ended by another rank's: so one that does it is alone.
TEST(Run, TaggedLinesNameTheirRankAndStayWhole) {
  EXPECT_EQ(shell("$TUTTI run -n 1 --tag sh -c 'printf a; printf \"b\\nc\"'").out, "[0] ab\n[0] c\n");
  const Result run = shell("$TUTTI run -n 2 --tag sh -c 'printf \"ab\\nc\"; echo e >&2'");
  EXPECT_EQ(lines_of(run.out), (Lines{"[0] ab", "[0] c", "[1] ab", "[1] c"}));
  EXPECT_EQ(lines_of(run.err), (Lines{"[0] e", "[1] e"}));
}

TEST(Run, ARankThatFailsEndsTheOthersUnlessTheyAreToKeepGoing) {
  const auto run = [](const std::string& option) {  // the others end when the command has said that rank 1 has failed
    return shell("export file=$(mktemp); timeout -s KILL 20 $TUTTI run " + option +
                 " -n 3 sh -c 'if [ $TUTTI_RANK = 1 ]; then exit 3; fi; "
                 "until grep -q \"status 3\" $file; do sleep 0.02; done; echo $TUTTI_RANK' 2> $file; "
                 "status=$?; cat $file >&2; rm $file; exit $status");
  };
  const Result goes_on = run("--keep-going");
  EXPECT_EQ(goes_on.status, 0);
  EXPECT_EQ(lines_of(goes_on.out), (Lines{"0", "2"}));
  EXPECT_EQ(goes_on.err, "tutti run: rank 1 exited with status 3; the others go on\n");
  EXPECT_EQ(run("").status, 1);
}

TEST(Run, AJobThatKeepsGoingHasFailedIfAllItsRanksHave) {
  const Result run = shell("$TUTTI run --keep-going -n 2 sh -c 'exit $((4 + TUTTI_RANK))'");
  EXPECT_EQ(run.status, 1);
  EXPECT_THAT(run.err, HasSubstr("rank 0 exited with status 4"));
  EXPECT_THAT(run.err, HasSubstr("rank 1 exited with status 5"));
  EXPECT_EQ(shell("$TUTTI run --keep-going --max-restarts 1 true").status, 2);
}

TEST(Run, ATaggedJobEndsWhenNobodyReadsItsOutput) {
  const Result run = shell("{ $TUTTI run -n 2 --tag yes; echo status $? >&2; } | head -1 >/dev/null");
  EXPECT_THAT(run.err, HasSubstr("status 1"));
  EXPECT_THAT(run.err, testing::Not(HasSubstr("guardian")));
}

TEST(Run, TagsKeepUpWithMuchOutput) {
  // Whole lines: what ends in the middle of one may be held up there, and another rank's line comes between.
  const Result run = shell("$TUTTI run -n 3 --tag sh -c 'i=0; while [ $i -lt 20000 ]; do i=$((i+1)); echo $i; done'");
  EXPECT_EQ(lines_of(run.out).size(), 60000u);
  EXPECT_EQ(lines_of(run.out).count("[2] 19999"), 1u);
}

// The processors that each rank of `command` may run on, as the kernel writes them.
std::vector<std::string> places_under(const std::string& command) {
  const Result run =
      shell(command + " sh -c 'echo $TUTTI_RANK $(grep Cpus_allowed_list /proc/self/status)' | sort -n | cut -f 2");
  EXPECT_EQ(run.err, "");
  std::istringstream stream(run.out);
  std::vector<std::string> places;
  for (std::string line; std::getline(stream, line);) places.push_back(line.substr(line.rfind(' ') + 1));
  return places;
}

std::size_t different(const std::vector<std::string>& places) {
  return std::set<std::string>(places.begin(), places.end()).size();
}

TEST(Run, BoundRanksGoRoundTheUsableCoresWhereTheyOutnumberTheProcessors) {
  const std::size_t cores = usable_cores().size(), ranks = topology::allowed_processors().size() + 1;
  const auto places = places_under("$TUTTI run --bind core -n " + std::to_string(ranks));
  ASSERT_EQ(places.size(), ranks);
  for (std::size_t i = cores; i < ranks; ++i) EXPECT_EQ(places[i], places[i - cores]);
  EXPECT_EQ(different(places), cores);
}

TEST(Run, RanksAreBoundWithoutBeingAskedOnlyWhereEachHasACore) {
  const std::size_t cores = usable_cores().size();
  const std::string here = places_under("").front();
  const auto one_each = places_under("$TUTTI run -n " + std::to_string(cores));
  EXPECT_EQ(different(one_each), has_core_for_each(static_cast<int>(cores)) ? cores : 1);
  EXPECT_EQ(places_under("$TUTTI run -n 1"), std::vector<std::string>{here});
  EXPECT_EQ(places_under("$TUTTI run --bind none -n 2"), (std::vector<std::string>{here, here}));
  const auto too_many = places_under("$TUTTI run -n " + std::to_string(cores + 1));
  EXPECT_EQ(different(too_many), 1u);
  EXPECT_EQ(too_many.front(), here);
}

TEST(Run, AnAffinityThatTheUserHasSetIsKept) {
  const std::string only = std::to_string(topology::allowed_processors().back());
  EXPECT_EQ(places_under("taskset -c " + only + " $TUTTI run -n 2"), (std::vector<std::string>{only, only}));
  EXPECT_EQ(places_under("taskset -c " + only + " $TUTTI run --bind core -n 2"),
            (std::vector<std::string>{only, only}));
}

TEST(Run, ARankThatFailsIsNamedAndTheOthersAreStopped) {
  const std::string sleep = unique_sleep();
  const Result run = shell("$TUTTI run -n 3 sh -c '[ $TUTTI_RANK = 1 ] && exit 7; exec " + sleep + "'");
  EXPECT_EQ(run.status, 1);
  EXPECT_EQ(run.err, "tutti run: rank 1 exited with status 7; stopping the others\n");
  EXPECT_EQ(count_processes(sleep), 0);
}

TEST(Run, ARankThatASignalEndsIsNamed) {
  const Result run = shell("$TUTTI run -n 2 sh -c '[ $TUTTI_RANK = 0 ] && kill -KILL $$; exit 0'");
  EXPECT_EQ(run.status, 1);
  EXPECT_THAT(run.err, HasSubstr("rank 0 was killed by signal 9 (Killed)"));
}

TEST(Run, RanksThatIgnoreTheirEndAreKilled) {
  const std::string sleep = unique_sleep();
  const Result run =
      shell("$TUTTI run -n 2 sh -c 'trap \"\" TERM INT; [ $TUTTI_RANK = 1 ] && exit 7; " + sleep + "; true'");
  EXPECT_EQ(run.status, 1);
  EXPECT_EQ(count_processes(sleep), 0);
}

TEST(Run, RestartsAsOftenAsAsked) {
  const Result run = shell("$TUTTI run -n 1 --max-restarts 2 sh -c 'echo begun; exit 5'");
  EXPECT_EQ(run.status, 1);
  EXPECT_EQ(run.out, "begun\nbegun\nbegun\n");
  EXPECT_THAT(run.err, HasSubstr("starting all ranks again (2 of 2)"));
}

TEST(Run, WhatRanksLeaveBehindIsEnded) {
  const std::string sleep = unique_sleep();
  EXPECT_EQ(shell("$TUTTI run -n 2 sh -c '" + sleep + " & setsid " + sleep + " & true'").status, 0);
  EXPECT_EQ(count_processes(sleep), 0);
}

// It has a second, in which it may get no processor: so it may try again.
TEST(Run, WhatRanksLeaveBehindMayFinishAtOnce) {
  std::string out;
  auto took = std::chrono::steady_clock::duration::max();
  for (int tries = 0; tries < 3 && out.empty() && took >= std::chrono::seconds(1); ++tries) {
    const auto begin = std::chrono::steady_clock::now();
    out = shell("$TUTTI run -n 1 sh -c '(sleep 0.2; echo late) &'").out;
    took = std::chrono::steady_clock::now() - begin;
  }
  EXPECT_EQ(out, "late\n");
}

// Children of ranks too, even in a session of their own. Two processes a rank: the shell that has the words in its
// command line is replaced by the second.
void expect_all_end_with_the_launcher(int signal, int status) {
  const std::string sleep = unique_sleep();
  const pid_t launcher = start("exec $TUTTI run -n 3 sh -c 'setsid " + sleep + " & exec " + sleep + "' 2>/dev/null");
  // The launcher and its guardian have the words in their command lines as well.
  ASSERT_TRUE(reaches(sleep, 8));
  kill(launcher, signal);
  EXPECT_EQ(wait_for(launcher), status);
  EXPECT_TRUE(reaches(sleep, 0)) << "signal " << signal;
}

TEST(Run, AnInterruptedLauncherEndsItsRanks) { expect_all_end_with_the_launcher(SIGINT, 1); }
TEST(Run, ATerminatedLauncherEndsItsRanks) { expect_all_end_with_the_launcher(SIGTERM, 1); }
TEST(Run, AKilledLauncherTakesItsRanksAlong) { expect_all_end_with_the_launcher(SIGKILL, 128 + SIGKILL); }

TEST(Run, AProgramThatDoesNotExistIsWrongInput) {
  const Result run = shell("$TUTTI run -n 4 no-such-program-here");
  EXPECT_EQ(run.status, 2);
  EXPECT_EQ(run.err, "tutti run: there is no program no-such-program-here in PATH\n");
  EXPECT_EQ(shell("$TUTTI run -n 4 /no/such/program").status, 2);
  EXPECT_EQ(shell("$TUTTI run -n 4 /etc/passwd").status, 2);
  EXPECT_EQ(shell("$TUTTI run -n 4").status, 2);
}

TEST(Run, AFileThatTheSystemCannotExecuteIsWrongInput) {
  const Result run = shell("file=$(mktemp); chmod +x $file; $TUTTI run -n 2 $file; status=$?; rm $file; exit $status");
  EXPECT_EQ(run.status, 2);
  EXPECT_THAT(run.err, HasSubstr("Exec format error"));
}

TEST(Run, AMillionRanksAreRefusedInWords) {
  for (const std::string command :
       {"run -n 1000000 true", "train -n 1000000 --data " NIST_DATA "pontius.csv --degree 2",
        "bench all_reduce -n 1000000", "train -n 1000000 --transport inproc --data " NIST_DATA "pontius.csv --degree 2",
        "bench barrier -n 1000000 --transport inproc"}) {
    const Result run = shell("$TUTTI " + command);
    EXPECT_EQ(run.status, 2) << command;
    EXPECT_THAT(run.err, HasSubstr("1000000 ranks do not fit on this host; at most ")) << command;
  }
}

TEST(Run, TooManyRanksOverAllHostsAreRefused) {
  const Result run = shell("$TUTTI run -n 1000 --nnodes 1000 --master-addr h true");
  EXPECT_EQ(run.status, 2);
  EXPECT_THAT(run.err, HasSubstr("1000000 ranks are more than the 65536"));
}

TEST(Run, WrongOptionsAreRefusedWithAHint) {
  for (const char* words :
       {"-n 0 true", "-n -3 true", "-n many true", "--frobnicate true", "--bind moon true", "--master-port 65536 true",
        "--nnodes 2 true", "--nnodes 2 --node-rank 2 --master-addr h true"}) {
    const Result run = shell(std::string("$TUTTI run ") + words);
    EXPECT_EQ(run.status, 2) << words;
    EXPECT_THAT(run.err, testing::StartsWith("tutti run: ")) << words;
    EXPECT_EQ(run.out, "") << words;
  }
}

}  // namespace
}  // namespace tutti::internal::tools
