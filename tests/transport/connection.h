// Two ranks joined by a transport: what the conformance suite runs on.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include "brief.h"
#include "transport/sleeper.h"
#include "transport/transport.h"

namespace tutti::internal {

class Connection {
 public:
  virtual ~Connection() = default;
  // Rank `side`'s (0 or 1) end of the channel for `communicator`. The two ends may be opened in either order, in one
  // thread.
  virtual std::unique_ptr<Channel> open(int side, std::uint64_t communicator) = 0;
  virtual Transport& transport(int side) = 0;
  virtual Sleeper& sleeper(int side) = 0;
};

struct ConnectionKind {
  std::string name;
  std::function<std::unique_ptr<Connection>()> make;
  bool notices_close = true;  // when the peer's channel is destroyed
  // False: the longest cases are cut, for a wrapper that injects faults, and for all under sanitizers.
  bool quick = !kBrief;
};
inline std::ostream& operator<<(std::ostream& out, const ConnectionKind& kind) { return out << kind.name; }

// Every kind that is registered (transport/registry.h) and can be used here; threads of one process; verbs over a
// fake device; and each of them behind a wrapper that injects faults.
std::vector<ConnectionKind> all_connections();

}  // namespace tutti::internal
