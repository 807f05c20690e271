// The process between the launcher and its ranks. It is their parent and the adoptive parent of whatever they leave
// behind, and it outlives the launcher: so nothing stays when the launcher is killed, by whatever signal.
//
//   launcher ──pipe──> guardian ──> rank 0, rank 1, …       a byte in the pipe is a signal to pass on; its end is the
//   launcher's
#pragma once

#include <signal.h>

#include <string>
#include <vector>

#include "launch.h"
#include "topology/processors.h"

namespace tutti::tools {

// What is decided once, before the guardian is forked.
struct Plan {
  std::string program;  // path
  int size = 0;
  std::string master;                        // address:port
  std::string secret;                        // empty: leave the environment's
  std::string reports;                       // the name of the socket that takes what ranks report: rank_reports.h
  std::vector<topology::Processors> places;  // by rank of this host; empty: no binding
};

// In the pipe: this bit is set when the terminal has already sent the signal to the ranks too.
inline constexpr unsigned char kAlreadyDelivered = 0x80;

// Runs in a process of its own, the signals `awaited` blocked: SIGCHLD and all that end a job. Starts the ranks with
// the signal mask `mask`, watches them, and returns the exit status: 0, 1, or 2 when the system cannot execute the
// program. Nothing that a rank does, and nobody who does not read what it writes, holds it up.
int guard(const Job& job, const Plan& plan, int launcher, const sigset_t& awaited, const sigset_t& mask);

// Sends SIGKILL to all children of this process, which are children of its main thread.
void kill_children();

// Kills and reaps all children of this process and all that fall to it by their death. Requires PR_SET_CHILD_SUBREAPER.
void end_descendants();

}  // namespace tutti::tools
