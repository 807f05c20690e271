// How the guardian of one host takes part in a job that is started again as a whole.
//
// Each guardian says what becomes of its ranks, and gets orders: start, end, over. Node 0 decides (course.h). It
// listens at the port after the master's; the other guardians keep a connection to it, on which both ends prove that
// they hold the job's secret (net/handshake.h). A job on one host decides for itself, by the same rules, without a
// connection.
#pragma once

#include <poll.h>

#include <optional>
#include <span>
#include <vector>

#include "run/job.h"
#include "run/node_message.h"

namespace tutti::internal::tools {

class Nodes {
 public:
  virtual ~Nodes() = default;

  // What to wait for: adds to `fds`, shortens `timeout_ms` (-1: without end). Then hand what was added, polled, to
  // serve(). Neither blocks.
  virtual void await(std::vector<pollfd>& fds, int& timeout_ms) = 0;
  virtual void serve(std::span<const pollfd> polled) = 0;

  // failed, ended or stop, of this host.
  virtual void say(const NodeMessage& message) = 0;
  // start, end or over, for this host, or a ping with words for the user. Nothing follows `over`, which also comes when
  // the others are out of reach.
  virtual std::optional<NodeMessage> next() = 0;
};

// Whether launchers on several hosts have anything to agree on.
inline bool has_other_nodes(const Job& job) { return job.nodes > 1 && job.max_restarts > 0; }

}  // namespace tutti::internal::tools
