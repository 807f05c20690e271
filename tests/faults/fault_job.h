// A job of fault_rank processes, and what they say.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <csignal>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "faults/fault_plan.h"

namespace tutti::internal {

// Two network namespaces, connected, for ranks that are to be of two hosts. They go with this object.
class TwoHosts {
 public:
  static bool can_be_made();
  TwoHosts();
  ~TwoHosts();
  TwoHosts(const TwoHosts&) = delete;
  TwoHosts& operator=(const TwoHosts&) = delete;

  int space_of(int host) const { return spaces_[host]; }
  void take_down(int host) const;  // its interface: nothing comes or goes
  void silence(int host) const;    // what it sends is lost, and nobody tells it
  void restore() const;
  static constexpr const char* kMeetAt = "10.78.0.1";

 private:
  pid_t keepers_[2] = {};  // processes that do nothing
  int spaces_[2] = {-1, -1};
};

class FaultJob {
 public:
  using Clock = std::chrono::steady_clock;

  // hosts: nullptr where all ranks are of this one.
  FaultJob(const FaultPlan& plan, const TwoHosts* hosts);
  ~FaultJob();  // kills what is left, forked children too
  FaultJob(const FaultJob&) = delete;
  FaultJob& operator=(const FaultJob&) = delete;

  struct Story {
    Clock::time_point when;
    std::string code;
    int peer;
    std::string text;
    friend bool is_same(const Story& one, const Story& other) {
      return one.code == other.code && one.peer == other.peer && one.text == other.text;
    }
    std::string whole() const { return code + " " + std::to_string(peer) + " " + text; }
  };
  struct Rank {
    pid_t process = 0;
    int said = -1;  // what it prints; -1: all has been read
    std::string line;
    bool is_ready = false;
    std::optional<Clock::time_point> heard;
    std::optional<Story> story;
    std::vector<std::string> wrong;
    int calls = 0;                       // as it last said
    std::optional<std::string> went_on;  // with these ranks
    std::optional<std::string> refused;  // to go on: the code, and why
    std::optional<int> status;           // as waitpid() says
  };
  const Rank& rank(int number) const { return ranks_[static_cast<std::size_t>(number)]; }
  bool all(const std::function<bool(const Rank&)>& is_so, const std::function<bool(int)>& of) const;

  void signal(int number, int signal);
  // Reads what the ranks print until then. True as soon as `done` says so.
  bool listen(
      Clock::time_point until, const std::function<bool()>& done = [] { return false; });
  void close_input();  // those that stay leave now

 private:
  void start(int number, const FaultPlan& plan, const TwoHosts* hosts, int port);
  void read(Rank& rank);
  static void take(Rank& rank, const std::string& line);

  int input_[2] = {-1, -1};
  std::vector<Rank> ranks_;
};

}  // namespace tutti::internal
