// Everything that can be set about joining and waiting, as a value. One function reads it from the environment.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "tutti/log.h"
#include "tutti/types.h"

namespace tutti {

struct Settings {
  // Who and where. Filled by from_env from the first launcher it recognises (docs/reference/environment.md).
  int rank = -1;
  int size = -1;
  std::string master_address;  // host name or address of rank 0; empty: ranks meet on this host alone
  std::uint16_t master_port = 0;

  // Admission: who holds it may join. Empty: only processes of the same user on the same host may, or, with a Store,
  // whoever can read that, where rank 0 puts one.
  std::string secret;

  // Waiting. More than ten years count as ten.
  std::chrono::milliseconds timeout{600'000};        // a peer, or a GPU, that has not come to the call
  std::chrono::milliseconds connect_timeout{5'000};  // a peer that cannot be reached, once it is known to exist
  std::chrono::milliseconds join_timeout{60'000};    // all ranks starting up
  std::chrono::milliseconds warn_after{10'000};      // after which a wait in a call is logged, once
  // Who is silent for 3 times connect_timeout is lost: unreachable, or stopped, as by a debugger.

  // Network. Nothing listens wider than asked: `interface` is a name ("eth0") or an address; empty means the loopback
  // for ranks that meet on one host, and the interface that reaches the master otherwise.
  std::string interface;
  // Ports to listen on, [port_first, port_last]; 0: the system chooses. Rank 0, where it waits at master_address,
  // listens at master_port alone.
  std::uint16_t port_first = 0;
  std::uint16_t port_last = 0;

  // "auto": shared memory between ranks of one host; between hosts RDMA verbs where both have a port to use, else TCP.
  // "shm", "tcp" and "verbs" force one for all (shm across hosts, or a rank without an RDMA port, is an error).
  std::string transport = "auto";

  // Which RDMA port: a device, or device:port ("mlx5_0:1"), empty for the nearest that is up; and the index of the GID
  // to use, negative for a RoCE v2 one, IPv4 before IPv6.
  std::string verbs_device;
  int verbs_gid = -1;

  // The file of a table, as `tutti tune` writes it, that says which algorithm a call uses; empty: the built-in one.
  // Rank 0's counts for the whole job, and rank 0 alone reads it; one that is wrong fails the join on every rank.
  std::string table;

  // What the library says of its own accord, and to whom: without a sink, on stderr, where it never waits for a reader.
  LogLevel log_level = LogLevel::warn;
  LogSink log_sink;

  // Reads TUTTI_* and the variables of torchrun, Open MPI, MPICH/Hydra and Slurm.
  // Throws Error{invalid_argument} that names the variable and what it should look like.
  static Settings from_env();
};

}  // namespace tutti
