// The environment, read once and turned into Settings. env.cc is the only file of src/ that reads it, but for what is
// CUDA's (cuda/stream.cc: CUDA_LAUNCH_BLOCKING). Of tools/, launch.cc looks whether what it sets is there.
//
// Ours (each overrides what a launcher says):
//
//   TUTTI_RANK, TUTTI_SIZE   who this process is; set by `tutti run`
//   TUTTI_ATTEMPT            how often the job was started again before (0); set by `tutti run`
//   TUTTI_MASTER             host:port where the ranks meet, rank 0 listening; ":port" is this host alone
//   TUTTI_SECRET             only who knows it may join; else
//   TUTTI_SECRET_FILE        a file that holds it, mode 0600 or stricter; else ~/.config/tutti/secret, likewise
//   TUTTI_TIMEOUT            seconds that a call waits for a peer which is alive (600)
//   TUTTI_CONNECT_TIMEOUT    seconds that reaching a peer may take (5), 12 times that its answer, 3 times its silence
//   TUTTI_JOIN_TIMEOUT       seconds that all ranks may take to start (60)
//   TUTTI_INTERFACE          name or address of the interface to listen on
//   TUTTI_PORTS              first-last, the ports to listen on; not for rank 0 where it waits at host:port
//   TUTTI_TRANSPORT          auto, shm, tcp or verbs
//   TUTTI_VERBS_DEVICE       the RDMA device to use, or device:port
//   TUTTI_VERBS_GID          the index of its GID to use
//   TUTTI_TABLE              the file of a table of algorithms, read by rank 0 for all
//   TUTTI_DUMP_DIR           where a rank writes what it has called when a communicator fails
//   TUTTI_DUMP_SIGNAL        and when this signal comes: USR1, USR2, HUP or QUIT
//   TUTTI_DEBUG              what the library says: warn, info or trace (tutti/log.h)
//   TUTTI_LAUNCHER           where `tutti run` takes a rank's last words (launcher.h); set by it, not by users
//
// Launchers, the first that is recognised:
//
//   tutti run                TUTTI_RANK TUTTI_SIZE TUTTI_MASTER
//   torchrun                 RANK WORLD_SIZE MASTER_ADDR MASTER_PORT (+ 1 when TORCHELASTIC_USE_AGENT_STORE is True:
//                            the agent itself listens at MASTER_PORT)
//   Open MPI                 OMPI_COMM_WORLD_RANK OMPI_COMM_WORLD_SIZE; several hosts need TUTTI_MASTER
//   MPICH, Intel MPI         PMI_RANK PMI_SIZE; several hosts need TUTTI_MASTER
//   Slurm                    SLURM_PROCID SLURM_NTASKS; the first host of the step, a port made from the job's number
//   none of them             rank 0 of 1
#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <string_view>

#include "tutti/settings.h"

namespace tutti::internal {

// The value of an environment variable, nullptr where it is not set.
using Lookup = std::function<const char*(const char* name)>;

// Settings::from_env over any environment. Reads the secret's file too. Throws Error{invalid_argument} that names the
// variable and what it should look like.
Settings settings_from(const Lookup& lookup);

// The same of the variables that are TUTTI_'s own and say nothing of who the ranks are, or where they meet. Rank and
// size are not set.
Settings tuning_from(const Lookup& lookup);
Settings tuning_from_env();

// Whether TUTTI_TIMEOUT is set, and says this. Throws nothing.
bool is_timeout_of_env(std::chrono::milliseconds timeout) noexcept;

// The name of the socket where the launcher of this very process listens, TUTTI_LAUNCHER; nullptr where none does.
const char* launcher_name() noexcept;

// The same with no time above kLongestWait: times are multiplied, by twelve at most, and added to a clock's
// nanoseconds, of which 64 bits hold 292 years. Nor does a rank wait for less than a few words of another one, which
// come every ten milliseconds at most.
inline constexpr std::chrono::years kLongestWait{10};
inline constexpr std::chrono::milliseconds kShortestHeartbeatTimeout{100};
Settings within_clocks(Settings settings);

// The first host of Slurm's list: "node[007-009,12],login" is "node007".
std::string first_host(const std::string& node_list);

}  // namespace tutti::internal
