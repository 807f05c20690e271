// Starts the ranks of a job on this host, stays with them until the last has ended, and leaves no process behind.
//
// Each rank is a process that finds TUTTI_RANK, TUTTI_SIZE, TUTTI_ATTEMPT, TUTTI_MASTER (address:port), TUTTI_SECRET
// and TUTTI_LAUNCHER in its environment. At TUTTI_LAUNCHER, a socket's name, it can report what its exit status does
// not show.
#pragma once

#include <optional>
#include <string>

#include "run/job.h"

namespace tutti::internal::tools {

// Blocks until every rank has ended. Returns 0 when all ended with status 0 and none reported that it ended badly
// (src/control/launcher.h), else 1, after saying on stderr which rank failed and how. When one fails the others get a
// few seconds to notice, then SIGTERM, then SIGKILL. (Job::keep_going: they go on, and one that ends with status 0 is
// enough.) SIGINT and SIGTERM are passed on. When this process is killed, by
// whatever signal, the ranks and their children die too (their children only if the guardian is not killed with it).
// Throws UsageError before any rank runs: no such program, more ranks than this host can hold.
int launch(const Job& job);

// For commands that take -n: in a process that is not yet a rank (no TUTTI_RANK), starts `ranks` ranks of this very
// command line and returns the job's exit status (2 when a rank's was 2). In a process that is a rank, and when `ranks`
// is nothing, returns nothing: go on and join with Communicator::from_env().
//
//   if (const auto status = launch_self("tutti train", options.ranks)) return *status;
//
// Check all that can be checked of the options before: n ranks would print the same complaint n times.
// What else must hold is to be looked at only by the one that starts them: is_launcher().
bool is_launcher(std::optional<int> ranks);
std::optional<int> launch_self(const std::string& name, std::optional<int> ranks, Bind bind = Bind::automatic);

}  // namespace tutti::internal::tools
