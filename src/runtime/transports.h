// The transports of a job: which of them reaches which rank, and the connections that their channels need.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "base/log.h"
#include "control/control.h"
#include "executor/symmetric_memory.h"
#include "transport/connector.h"
#include "transport/transport.h"
#include "tutti/error.h"
#include "tutti/settings.h"

namespace tutti::internal {

class Transports {
 public:
  // `settings`, `log` and `sleeper` must outlive it. `only`: the job uses this transport, whatever the settings say.
  // Throws Error{invalid_argument} where settings of a transport are malformed.
  Transports(const Settings& settings, const Log& log, Sleeper& sleeper, std::unique_ptr<Connector> only = nullptr);

  // Before joining: what this rank cannot use, and why, for Announcement::obstacles.
  std::string probe();

  // All ranks have joined: chooses, and makes the transports. `share_processors`: this host has fewer processors than
  // ranks. Throws Error{unsupported, system} where the settings name a transport that does not do.
  void begin(const std::vector<Member>& members, bool share_processors);

  // From here on after begin().
  const std::vector<int>& hosts() const { return hosts_; }  // by rank: equal for ranks that share memory
  std::vector<Transport*> used() const;
  bool wakes_sleepers() const;   // all messages do: Connector::wakes_sleepers()
  std::string describe() const;  // which transport to how many ranks, and why not a better one

  // The channel to world rank `peer`, and, from the higher rank, a connection asked for where there is none. Under the
  // engine's lock.
  std::unique_ptr<Channel> open(Control& control, std::uint64_t communicator, int peer);
  // On the control thread. A connection that fails is the channel's to report: it asks the control plane first what
  // became of the peer. Takes the fd.
  void on_connection(int peer, Path path, std::uint64_t communicator, int fd, const Error* error);
  // What this rank lacked for a connection to that rank, such as a descriptor. Empty: nothing. Thread-safe.
  std::string lack_for(int peer) const;

  std::shared_ptr<SymmetricMemory> allocate(std::size_t bytes) const;
  // As Communicator::adopt().
  std::shared_ptr<void> adopt(std::byte* data, std::size_t bytes) const;
  // As Transport::shares(), of all that are used.
  bool shares(const std::byte* data, std::size_t bytes) const;
  void keep_memory();  // as Transport::keep_memory()
  // While the result lives, data[0, bytes) is sent without a copy where a transport can. Thread-safe. Throws
  // Error{system}.
  std::shared_ptr<void> register_memory(std::byte* data, std::size_t bytes) const;
  void look_at_peers();

 private:
  struct Kind {
    std::unique_ptr<Connector> connector;
    bool is_candidate = false;           // the settings allow it
    std::vector<std::string> obstacles;  // by rank: why it cannot use this kind; empty if it can
    Transport* transport = nullptr;      // once it is used
    bool reaches(int a, int b, const JobRanks& ranks) const;
  };
  bool is_forced() const { return settings_.transport != "auto"; }
  void read_obstacles(const std::vector<Member>& members);
  void demand(const Kind& kind, const JobRanks& ranks) const;
  void warn_of_unused(const Kind& kind, const JobRanks& ranks) const;

  const Settings& settings_;
  const Log& log_;
  std::vector<Kind> kinds_;  // the first that reaches a rank is used
  std::vector<Kind*> to_;    // by rank; nullptr for this one
  std::vector<int> hosts_;
  std::set<int> asked_;  // ranks that a connection for all channels has been asked to
  mutable std::mutex mutex_;
  std::map<int, std::string> lacks_;  // by rank
};

}  // namespace tutti::internal
