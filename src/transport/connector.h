// How a kind of transport takes part in a job: whether this rank can use it, which peers it reaches, and what it does
// with the connections to them. A job has one connector for each kind that registry.h lists.
//
// A rank makes its connectors, probes them, and tells all ranks what it cannot use. Once all ranks have joined, each
// pair of ranks uses the first kind of the list that both can use and that reaches from one to the other. Both ranks
// find the same one, since both know the same.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/log.h"
#include "transport/sleeper.h"
#include "transport/transport.h"
#include "tutti/settings.h"
#include "types/path.h"

namespace tutti::internal {

// What a rank knows of the job's ranks once all have joined.
struct JobRanks {
  int own = 0;
  std::vector<int> host;          // by rank: equal for ranks of one host
  bool share_processors = false;  // this host has fewer processors than ranks

  int size() const { return static_cast<int>(host.size()); }
  int neighbours() const { return static_cast<int>(std::ranges::count(host, host[own])); }  // this rank is one
};

// The connection that a channel needs before it can move anything.
struct Route {
  Path path;
  bool per_communicator;  // a connection for each channel; else one for all channels of the two ranks
};

class Connector {
 public:
  virtual ~Connector() = default;
  virtual std::string_view name() const = 0;
  virtual std::optional<Route> route() const = 0;  // nothing: its channels need no connection
  // Whether the ranks that it joins read and write the same memory: they count as ranks of one host.
  virtual bool shares_memory() const { return false; }
  // Whether its messages pass through the system's kernel, which wakes a rank that sleeps sooner than one that yields.
  virtual bool wakes_sleepers() const { return false; }
  // The setting that asks for this transport though it may do without: "TUTTI_VERBS_DEVICE asks for mlx5_0". Or "".
  virtual std::string requested_by() const { return {}; }

  // Before this rank joins: why it cannot use this transport, for all ranks to hear; empty if it can. `is_forced`: the
  // job is to use no other.
  virtual std::string probe(bool is_forced, int size) {
    static_cast<void>(is_forced), static_cast<void>(size);
    return {};
  }

  // Why two ranks that can both use it do not reach each other by it; empty if they do.
  virtual std::string distance(int a, int b, const JobRanks& ranks) const {
    static_cast<void>(a), static_cast<void>(b), static_cast<void>(ranks);
    return {};
  }

  // Makes the transport. Called once, and only where this rank reaches some rank by it. Throws Error.
  virtual Transport& begin(const JobRanks& ranks) = 0;

  // No rank is reached by it: lets go of what probe() has opened.
  virtual void drop() {}

  // After begin(), on the control thread: a connection to `peer` for its channel of `communicator` (0: for all its
  // channels), non-blocking and authenticated, or why there is none. attach() takes the fd.
  virtual void attach(std::uint64_t communicator, int peer, int fd) = 0;
  virtual void fail(std::uint64_t communicator, int peer, const std::string& why) = 0;
};

// What a connector may use as long as it lives.
struct ConnectorContext {
  const Settings& settings;
  const internal::Log& log;
  Sleeper& sleeper;
};

}  // namespace tutti::internal
