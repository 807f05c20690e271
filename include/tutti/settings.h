/// @file
/// Everything that can be set about joining and waiting, as a value. One function reads it from the environment.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "tutti/export.h"
#include "tutti/log.h"
#include "tutti/types.h"

namespace tutti {

/// Who advances started calls of host memory. (Those of device memory always have a thread.)
enum class Progress : std::uint8_t {
  caller,  ///< the threads that make calls and wait for them, while they are in the library
  thread,  ///< also a thread of the library: a started call completes while its caller computes
};

/// How a rank joins and waits. docs/reference/environment.md has the variable of each member.
struct Settings {
  /// @name Who and where
  /// from_env() takes these from the first launcher that it recognises.
  /// @{
  int rank = -1;                  ///< the number of this rank in the job, [0, size)
  int size = -1;                  ///< how many ranks the job has; the same on every rank
  std::string master_address;     ///< host name or address of rank 0; empty: the ranks meet on this host only
  std::uint16_t master_port = 0;  ///< where rank 0 waits
  /// How often the job was started again before; the same on every rank. Ranks of different attempts do not meet.
  int attempt = 0;
  /// @}

  /// The job's secret: who holds it may join. Empty: only processes of the same user on the same host may join. With a
  /// Store and an empty secret, rank 0 puts a random secret into the store, and who can read the store may join.
  std::string secret;

  /// @name Waiting
  /// More than ten years count as ten.
  /// @{
  std::chrono::milliseconds timeout{600'000};  ///< how long a call waits for a peer or a GPU that does not come to it
  /// How long a rank tries to reach a peer that is known to exist.
  std::chrono::milliseconds connect_timeout{5'000};
  /// A rank of which nothing is heard for that long is lost: it cannot be reached, or it is stopped, for example by a
  /// debugger. The library sends something ten times in that time, at least twice a second. The same on every rank.
  /// Less than 100 ms counts as 100 ms.
  std::chrono::milliseconds heartbeat_timeout{5'000};
  std::chrono::milliseconds join_timeout{60'000};  ///< how long the ranks may take to start
  std::chrono::milliseconds warn_after{10'000};    ///< a call that waits for longer is logged, once
  /// Who advances started calls. The thread sleeps unless there is something to do. Blocking calls cost the same, as
  /// long as no started call is under way. Each rank may choose for itself.
  Progress progress = Progress::caller;
  /// @}

  /// Where to listen: the name of an interface ("eth0"), or an address. Empty: the loopback if the ranks meet on one
  /// host, else the interface that reaches the master. A rank listens nowhere else.
  std::string interface;
  /// The first port to listen on; 0: the system chooses. If rank 0 waits at master_address, it listens at master_port
  /// only.
  std::uint16_t port_first = 0;
  std::uint16_t port_last = 0;  ///< the last port to listen on, included

  /// "auto": shared memory between ranks of one host; between hosts RDMA verbs if both ranks have a port to use, else
  /// TCP. "shm", "tcp" and "verbs" force one transport for all ranks. A rank that cannot use it fails the join.
  std::string transport = "auto";

  /// The RDMA port: a device, or device:port ("mlx5_0:1"). Empty: the nearest port that is up.
  std::string verbs_device;
  int verbs_gid = -1;  ///< the index of the port's GID; negative: a RoCE v2 GID, IPv4 before IPv6

  /// The file of a table that says which algorithm a call uses, as `tutti tune` writes it. Empty: the built-in table.
  /// Only rank 0 reads it, and its table holds for the whole job. A wrong table fails the join on every rank.
  std::string table;

  /// Where a rank writes what it has called, as JSON, when a communicator fails: tutti-JOB-rankR.json, for `tutti
  /// status --dumps`. Empty: nowhere.
  std::string dump_dir;
  /// Also when this signal comes, within a second; 0: the library takes no signal. The program's own handler is called
  /// too. A job of one rank listens to none.
  int dump_signal = 0;

  LogLevel log_level = LogLevel::warn;  ///< how much the library says
  LogSink log_sink;  ///< who takes the lines; none: stderr, where the library never waits for a reader

  /// Reads TUTTI_* and the variables of torchrun, Open MPI, MPICH/Hydra and Slurm. Without any of them: a job of one
  /// rank. Does not block. Thread-safe, as long as no other thread changes the environment. Throws
  /// Error{invalid_argument}, which names the variable and says what it should look like; nothing has changed then.
  TUTTI_API static Settings from_env();
};

}  // namespace tutti
