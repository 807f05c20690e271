// Jobs are ended by force at random moments, while nobody reads what they write. Nothing of them is left. More jobs
// than usual, and other ones:
//
//     FAULTS=200 FAULT_SEED=5000 build/release/tests/tools/kill_test
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <map>
#include <thread>

#include "brief.h"
#include "faults/tally.h"
#include "tools/run/kill_job.h"
#include "tools/run/kill_plan.h"
#include "tools/shell.h"

namespace tutti::internal::tools {
namespace {

using namespace std::chrono_literals;

// Ranks have 3 s to notice, 2 s from SIGTERM to SIGKILL, their children 1 s more, and the reader of the output twice
// 2 s. A node that was left alone waits 4 s for the other one before. The rest is for a machine that others use too.
constexpr auto kEndsWithin = 20s;

struct KillTally {
  std::map<std::string, std::vector<double>> seconds;  // by the last blow
  std::map<std::string, int> statuses;
  int ended_before = 0, with_all_ranks = 0, with_sockets = 0, with_ports = 0, with_memory = 0, with_full_output = 0;
  int beyond_promise = 0, children_left = 0;

  void print() const {
    for (auto [blow, list] : seconds) {
      std::ranges::sort(list);
      std::printf("%s: %zu, until the end: median %.3f s, the longest %.3f s\n", blow.c_str(), list.size(),
                  list[list.size() / 2], list.back());
    }
    for (const auto& [status, times] : statuses) std::printf("%d launchers %s\n", times, status.c_str());
    std::printf(
        "before the last blow: %d jobs had ended, %d had all ranks, %d had sockets, %d listened, %d had memory, "
        "%d had filled the pipe\n",
        ended_before, with_all_ranks, with_sockets, with_ports, with_memory, with_full_output);
    std::printf("launcher and guardian killed together: %d; a child of a rank was left by %d\n", beyond_promise,
                children_left);
  }
};

void run_and_kill(const KillPlan& plan, KillTally& tally) {
  KillJob job(plan);
  job.strike();
  const auto left = job.await_end(kEndsWithin, plan.is_beyond_promise());
  const bool are_children = plan.is_beyond_promise() && !left.processes.empty() &&
                            std::ranges::count(left.processes, "child_of_rank") == std::ssize(left.processes);
  const double seconds = internal::seconds(job.took());
  if (!left.empty() && !are_children)
    ADD_FAILURE() << plan.text() << "\nleft after " << seconds << " s:" << left.text();

  const auto& seen = job.seen();
  tally.ended_before += seen.processes.empty() ? 1 : 0;
  tally.with_all_ranks += std::ranges::count(seen.processes, "killed_rank") >= plan.ranks * plan.nodes ? 1 : 0;
  tally.with_sockets += seen.sockets.empty() ? 0 : 1;
  tally.with_ports += seen.ports.empty() ? 0 : 1;
  tally.with_memory += seen.memory.empty() ? 0 : 1;
  tally.with_full_output += job.is_output_full() ? 1 : 0;
  tally.beyond_promise += plan.is_beyond_promise() ? 1 : 0;
  tally.children_left += are_children ? 1 : 0;
  for (int node = 0; node < plan.nodes; ++node) {
    const int status = job.status(node);
    ++tally.statuses[status == -1        ? "live"
                     : WIFEXITED(status) ? "exited with " + std::to_string(WEXITSTATUS(status))
                                         : "were ended by signal " + std::to_string(WTERMSIG(status))];
  }
  tally.seconds[name_of(plan.blows.back()) + (plan.nodes > 1 ? " of a node" : "")].push_back(seconds);
}

TEST(KilledJob, LeavesNothingWhereverItIsStruck) {
  if (!enclosure::enter()) GTEST_SKIP() << "no namespaces";
  const int jobs = number_from("FAULTS", kBrief ? 3 : 12);
  const int first = number_from("FAULT_SEED", 1);
  std::printf("seeds %d to %d\n", first, first + jobs - 1);
  KillTally tally;
  for (int seed = first; seed < first + jobs; ++seed) run_and_kill(KillPlan::draw(static_cast<unsigned>(seed)), tally);
  tally.print();
  if (jobs < 12) return;
  for (const int jobs_that_had : {tally.with_all_ranks, tally.with_sockets, tally.with_full_output})
    EXPECT_GT(jobs_that_had, 0) << "no job had begun when it was struck";
}

// Its ranks have ended by themselves, so it waits for who reads what they have written; until the job is ended.
TEST(KilledJob, ANodeThatWaitsForItsReaderEndsWithTheOtherOne) {
  if (!enclosure::enter()) GTEST_SKIP() << "no namespaces";
  for (const Victim victim : {Victim::launcher, Victim::guardian}) {
    const KillPlan plan{.seed = 0,
                        .ranks = 1,
                        .nodes = 2,
                        .wire = "shm",
                        .tags = true,
                        .restarts = 1,
                        .runs = 100ms,
                        .children = "--",
                        .outlet = Outlet::unread_pipe,
                        .blows = {{victim, 1, SIGKILL, 1500ms}}};
    KillTally tally;
    run_and_kill(plan, tally);
    EXPECT_EQ(tally.ended_before, 0);
  }
}

// What these tests look for is found where it is.
TEST(KilledJob, WhatALivingJobHasIsSeen) {
  if (!enclosure::enter()) GTEST_SKIP() << "no namespaces";
  EXPECT_TRUE(enclosure::look().empty()) << enclosure::look().text();
  KillPlan plan{.seed = 0,
                .ranks = 3,
                .nodes = 1,
                .wire = "shm",
                .tags = true,
                .restarts = 0,
                .runs = 60s,
                .children = "-cs",
                .outlet = Outlet::unread_pipe,
                .blows = {{Victim::guardian, 0, SIGSTOP, 0ms}}};
  std::fclose(std::fopen("/dev/shm/of_a_job", "w"));
  {
    KillJob job(plan);
    while (std::ranges::count(enclosure::look().processes, "child_of_rank") < 2) std::this_thread::sleep_for(1ms);
    job.strike();
    const auto seen = job.await_end(100ms, false);
    for (const auto& [name, count] : std::map<std::string, int>{{"killed_rank", 3}, {"child_of_rank", 2}, {"tutti", 2}})
      EXPECT_EQ(std::ranges::count(seen.processes, name), count) << name;
    EXPECT_TRUE(std::ranges::any_of(seen.sockets, [](const auto& line) { return line.find("@tutti-") != line.npos; }));
    EXPECT_FALSE(seen.ports.empty());
    EXPECT_FALSE(seen.memory.empty());
    EXPECT_EQ(seen.files, std::vector<std::string>{"/dev/shm/of_a_job"});
  }
  EXPECT_EQ(enclosure::look().text(), "\n  /dev/shm/of_a_job");
}

}  // namespace
}  // namespace tutti::internal::tools
