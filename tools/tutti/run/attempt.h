// All ranks of this host, started once: from the first fork until the last has ended and what they wrote is read.
#pragma once

#include <signal.h>
#include <sys/types.h>

#include <chrono>
#include <string>
#include <vector>

#include "run/job.h"
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
};

class Attempt {
 public:
  explicit Attempt(const Guardian& guardian) : guardian_(guardian), job_(guardian.job), output_(guardian.output) {}

  // Blocks until all have ended. Returns the exit status.
  int run();
  bool interrupted() const { return interrupted_; }

 private:
  // While there are ranks: running, or how they are made to end. Then: what they left behind may end, is killed; then
  // what they wrote is read.
  enum class Stage { running, grace, terminating, killing, lingering, clearing, reading, over };
  using Clock = std::chrono::steady_clock;

  bool start(int index);
  [[noreturn]] void become_rank(int index, pid_t guardian, int out, int err, int report) const;
  void watch();
  void hear_launcher();
  void hear_signals();
  void interrupt(int signal);
  void take_reports();
  void reap();
  void judge(int rank, int status);
  void move_on();
  void press_ranks();
  void clear_children();
  void await_reader();
  void enter(Stage stage, Clock::duration time);
  void stop_within(Clock::duration grace);
  void signal_all(int signal) const;

  const Guardian& guardian_;
  const Job& job_;
  RankOutput& output_;
  std::vector<pid_t> pids_;  // by rank of this host; 0 once it has ended
  int alive_ = 0;
  bool has_children_ = true;     // ranks, or what they left behind
  Clock::time_point give_up_{};  // on children that the kernel does not let go
  Stage stage_ = Stage::running;
  Clock::time_point deadline_ = Clock::time_point::max();  // of the stage
  int status_ = 0;
  bool interrupted_ = false;
  bool reported_ = false;   // by a rank whose exit status may not show it
  bool killed_ = false;     // ranks did not end by themselves
  std::uint64_t read_ = 0;  // bytes of output that had been taken when `deadline_` was set
};

}  // namespace tutti::internal::tools
