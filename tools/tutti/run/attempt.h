// All ranks of this host, started once: from the order to start them until the last has ended and what they wrote is
// read. The order to start them again, or that the job is over, is heard by the next Attempt.
#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "run/rank_processes.h"

namespace tutti::internal::tools {

class Attempt {
 public:
  explicit Attempt(const Guardian& guardian)
      : guardian_(guardian), job_(guardian.job), output_(guardian.output), ranks_(guardian) {}

  // Blocks until all have ended. Returns the exit status if the job is over, and nothing if another attempt may follow.
  std::optional<int> run();

 private:
  // Before there are ranks: waiting. While there are: running, or how they are made to end. Then: what they left behind
  // may end, is killed; then what they wrote is read.
  enum class Stage { waiting, running, grace, terminating, killing, lingering, clearing, reading, over };
  using Clock = std::chrono::steady_clock;

  void start_all(int number);
  void watch();
  void hear_launcher();
  void hear_nodes();
  void end_ranks(const NodeMessage& order);
  void job_is_over(const NodeMessage& order);
  void hear_signals();
  void interrupt(int signal);
  void take_reports();
  void reap();
  void judge(int rank, int status);
  void failed(const std::string& how);
  void move_on();
  void press_ranks();
  void clear_children();
  void await_reader();
  void enter(Stage stage, Clock::duration time);
  void stop_within(Clock::duration grace);

  const Guardian& guardian_;
  const Job& job_;
  RankOutput& output_;
  RankProcesses ranks_;
  Clock::time_point give_up_{};  // on children that the kernel does not let go
  bool abandoned_ = false;       // they are given up
  Stage stage_ = Stage::waiting;
  Clock::time_point deadline_ = Clock::time_point::max();  // of the stage
  int number_ = 0;                                         // of the attempt
  std::optional<int> job_status_;                          // once the job is over
  int status_ = 0;
  bool interrupted_ = false;
  bool reported_ = false;   // by a rank whose exit status may not show it
  bool killed_ = false;     // ranks did not end by themselves, or the job is ended
  std::uint64_t read_ = 0;  // bytes of output that had been taken when `deadline_` was set
};

}  // namespace tutti::internal::tools
