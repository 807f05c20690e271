// What a job of `tutti run` does and how it is ended, drawn from a seed.
#pragma once

#include <chrono>
#include <string>
#include <vector>

namespace tutti::internal::tools {

// Where the job's stdout and stderr go.
enum class Outlet { unread_pipe, abandoned_pipe, file };

enum class Victim { launcher, guardian, launcher_and_guardian, group, rank };

struct KillPlan {
  struct Blow {
    Victim victim;
    int rank;  // of Victim::rank; else the node whose it is
    int signal;
    std::chrono::milliseconds at;  // since the launcher was started
  };
  unsigned seed;
  int ranks;  // of each node
  int nodes;  // launchers, all on this host
  std::string wire;
  bool tags;
  int restarts;
  std::chrono::milliseconds runs;  // until the ranks end by themselves
  std::string children;            // killed_rank.cc
  Outlet outlet;
  std::vector<Blow> blows;  // in the order of time; the last one ends the job

  static KillPlan draw(unsigned seed);
  // Nobody is left who knows the forked children of ranks: launcher and guardian were killed at nearly the same time.
  bool is_beyond_promise() const;
  std::string command(const std::string& program, int node) const;
  std::string text() const;
};

std::string name_of(const KillPlan::Blow& blow);

}  // namespace tutti::internal::tools
