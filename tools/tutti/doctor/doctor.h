// What this machine offers to tutti, looked up once; and that in words, or as JSON. What is said is a function of what
// was found, so it is tested on machines that are made up.
#pragma once

#include <cstddef>
#include <limits>
#include <string>
#include <vector>

#include "doctor/gpus.h"
#include "transport/verbs/ports.h"

namespace tutti::internal::tools {

struct Address {
  std::string interface, text;
  bool is_outward;  // where other hosts reach this one
};

struct Findings {
  static constexpr std::size_t kUnlimited = std::numeric_limits<std::size_t>::max();

  std::string host;
  std::size_t cores = 0, processors = 0;  // that this process may use
  int share = 0;                          // how many processors' time its control groups let it have; 0: all
  std::size_t memory_nodes = 1;
  int node = -1;  // that it is bound near to

  bool reads_others = false;   // a rank may read the private memory of another one of this host
  bool reads_quickly = false;  // and does so sooner than by a ring

  std::vector<Address> addresses;

  bool has_libibverbs = false;
  std::vector<verbs::Port> ports;
  verbs::Choice choice;

  Gpus gpus;

  std::size_t locked_bytes = kUnlimited;  // that it may lock at most
  std::size_t open_files = kUnlimited, most_open_files = kUnlimited;

  std::string transport = "auto";  // TUTTI_TRANSPORT
  std::string error_text;          // what is wrong with the environment; empty if nothing is
};

Findings look_around();
std::string to_text(const Findings& findings);

// One object, one line: "host", "shared_memory", "reads_private_memory", "network", "rdma", "gpus" (gpus.h), "limits",
// "environment", "one_host" and "between_hosts". null is no limit, or none.
std::string to_json(const Findings& findings);

}  // namespace tutti::internal::tools
