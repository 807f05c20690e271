// A job of `tutti run` that is ended by force, in a place where whatever is there is the job's.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <string>
#include <vector>

#include "tools/run/kill_plan.h"

namespace tutti::internal::tools {

// From enter() on, this process and what it starts have a network, a /dev/shm and, where the programs do not lie there,
// a /tmp that nobody else has. All processes below this one whose parents end become its own children.
namespace enclosure {

bool enter();  // false: the system does not allow it

struct Contents {
  std::vector<std::string> processes;  // their names; those of all but this one
  std::vector<std::string> sockets, ports, files, memory;

  bool empty() const { return processes.empty() && has_no_more_than_processes(); }
  bool has_no_more_than_processes() const {
    return sockets.empty() && ports.empty() && files.empty() && memory.empty();
  }
  std::string text() const;
};
Contents look();

}  // namespace enclosure

class KillJob {
 public:
  using Clock = std::chrono::steady_clock;

  explicit KillJob(const KillPlan& plan);
  ~KillJob();  // kills what is left
  KillJob(const KillJob&) = delete;
  KillJob& operator=(const KillJob&) = delete;

  void strike();
  // Waits for that. What is there at the end: nothing, but children of ranks if `but_children`.
  enclosure::Contents await_end(std::chrono::milliseconds limit, bool but_children);

  // Before the last blow.
  const enclosure::Contents& seen() const { return seen_; }
  bool is_output_full() const { return is_output_full_; }
  Clock::duration took() const { return ended_ - struck_; }  // from the last blow until await_end() had seen the end
  // Of that node's launcher, as waitpid() says; -1: it lives.
  int status(int node) const { return nodes_[static_cast<std::size_t>(node)].status; }

 private:
  struct Node {
    pid_t launcher = 0, guardian = 0;  // 0: it has not been seen yet
    int status = -1;                   // of the launcher
  };
  void open_outlet(Outlet outlet);
  void strike(const KillPlan::Blow& blow);
  static pid_t find_guardian(Node& node);
  void reap();

  const KillPlan& plan_;
  int reader_ = -1;  // of the job's output, which nobody reads; a file, if that is what it is
  std::vector<Node> nodes_;
  Clock::time_point started_, struck_, ended_;
  enclosure::Contents seen_;
  bool is_output_full_ = false;
  bool has_children_ = true;
};

}  // namespace tutti::internal::tools
