// The process between the launcher and its ranks. It is their parent and the adoptive parent of whatever they leave
// behind, and it outlives the launcher: so nothing stays when the launcher is killed, by whatever signal.
//
//   launcher ──pipe──> guardian ──> rank 0, rank 1, …       a byte in the pipe is a signal to pass on; its end is the
//   launcher's
#pragma once

#include <signal.h>

#include "run/job.h"

namespace tutti::internal::tools {

// Runs in a process of its own, the signals `awaited` blocked: SIGCHLD and all that end a job. Starts the ranks with
// the signal mask `mask`, watches them, and returns the exit status: 0, 1, or 2 when the system cannot execute the
// program. Nothing that a rank does, and nobody who does not read what it writes, holds it up.
int guard(const Job& job, const Plan& plan, int launcher, const sigset_t& awaited, const sigset_t& mask);

}  // namespace tutti::internal::tools
