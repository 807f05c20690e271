// What goes wrong in a job of the random faults, drawn from a seed.
#pragma once

#include <chrono>
#include <string>
#include <vector>

namespace tutti::internal {

// TUTTI_HEARTBEAT_TIMEOUT of these jobs, where nothing else is said. On a machine that others use too a rank may get no
// processor for a second, and must not be given up for that.
inline constexpr std::chrono::milliseconds kSilence{2000};

enum class Fault {
  kill,
  kill_forked,  // a child of it lives on, and holds its descriptors
  stop,         // until the others have heard
  pause,        // for a moment, in which nobody may give it up
};

struct FaultPlan {
  struct Blow {
    Fault fault;
    int rank;
    std::chrono::milliseconds at;  // after all ranks are ready
  };
  unsigned seed;
  std::string wire;               // "shm", "tcp" or "hosts"
  int ranks;                      // of the job
  std::vector<int> hosts;         // by rank: 0 or 1
  bool is_without_zero;           // the communicator has all ranks but rank 0, which leaves the job
  std::vector<Blow> blows;        // in the order of time
  std::vector<std::string> then;  // by rank, what it does when it has heard: stay, leave, exit, shrink
  std::chrono::milliseconds silence = kSilence;

  static FaultPlan draw(unsigned seed, const std::string& wire);

  const Blow* blow_at(int rank) const;  // nullptr: nothing happens to it
  bool hits(int rank) const;            // it is killed, or stopped for long
  bool is_of_group(int rank) const { return rank > 0 || !is_without_zero; }
  bool is_heard_by_silence_only() const;  // of some blow
  std::string text() const;
};

}  // namespace tutti::internal
