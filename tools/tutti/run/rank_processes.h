// The processes of the ranks of this host: how one begins, and which have ended.
#pragma once

#include <signal.h>
#include <sys/types.h>

#include <utility>
#include <vector>

#include "run/job.h"
#include "run/nodes.h"
#include "run/rank_output.h"
#include "run/rank_reports.h"

namespace tutti::internal::tools {

// What the attempts of a guardian have in common.
struct Guardian {
  const Job& job;
  const Plan& plan;
  const sigset_t& rank_mask;    // the signal mask that ranks start with
  int launcher;                 // guardian.h: the pipe
  int signals;                  // a signalfd of SIGCHLD and of all signals that end a job
  sighandler_t on_broken_pipe;  // the ranks'; the guardian itself outlives who reads its output
  RankOutput& output;
  const RankReports& reports;
  Nodes& nodes;
};

class RankProcesses {
 public:
  explicit RankProcesses(const Guardian& guardian) : guardian_(guardian), job_(guardian.job) {}

  // The rank number `index` of this host, in attempt number `attempt`. 0, or, after saying why the system refuses, the
  // exit status of the job.
  int start(int index, int attempt);
  void signal_all(int signal) const;

  // Those that have ended since the last call: rank of this host, status of waitpid().
  std::vector<std::pair<int, int>> take_ended();
  int alive() const { return alive_; }
  bool has_any_succeeded() const { return has_any_succeeded_; }
  bool has_children() const { return has_children_; }  // ranks, or what they left behind, at the last take_ended()

 private:
  void await_begin(int report) const;
  struct Birth {  // of one rank
    int index;
    pid_t guardian;
    int out, err, report;  // descriptors; `report` takes the errno of an execve() that fails
    char* const* argv;
    char* const* envp;
  };
  [[noreturn]] void become_rank(const Birth& birth) const;

  const Guardian& guardian_;
  const Job& job_;
  const topology::Processors everywhere_ = topology::allowed_processors();  // where the guardian itself may run
  std::vector<pid_t> pids_;                                                 // by rank of this host; 0 once it has ended
  int alive_ = 0;
  bool has_any_succeeded_ = false;  // its exit status was 0
  bool has_children_ = true;
};

}  // namespace tutti::internal::tools
