// What the launcher is to start, and what it decides before it does.
#pragma once

#include <string>
#include <vector>

#include "topology/processors.h"

namespace tutti::internal::tools {

enum class Bind {
  automatic,  // core where has_core_for_each() (host.h) says so, else none
  none,
  core,  // each rank of this host runs where places_for() (host.h) says
};

struct Job {
  std::string name;               // how messages begin: "tutti run"
  std::vector<std::string> argv;  // the program, searched in PATH, and its arguments
  int ranks = 1;                  // on this host
  int first_rank = 0;             // of this host
  int size = 0;                   // of the whole job; 0: `ranks`
  int nodes = 1;                  // hosts of the job, each with a launcher
  int node_rank = 0;              // this one's number
  std::string master_address;     // empty: of the loopback; where that is down the ranks meet at a local socket
  int master_port = 0;            // 0: a free one, kept reserved while the job runs
  bool make_secret = true;  // a random one, unless the environment already holds TUTTI_SECRET or TUTTI_SECRET_FILE
  Bind bind = Bind::automatic;
  bool tag = false;               // each line of output begins with its rank: "[2] "
  int max_restarts = 0;           // start all ranks of the job again this many times after a failure
  bool keep_going = false;        // a rank that fails does not end the others. The job has failed if all have
  bool pass_on_status_2 = false;  // a rank's exit status 2 (wrong input) becomes the job's
};

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

}  // namespace tutti::internal::tools
