// A node but the first: it keeps a connection to node 0, says what becomes of its ranks, and does as it is told.
#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "control/meeting.h"
#include "run/node_link.h"
#include "run/nodes.h"

namespace tutti::internal::tools {

class NodeMember final : public Nodes {
 public:
  NodeMember(const Settings& settings, Meeting meeting, std::string options);

  void await(std::vector<pollfd>& fds, int& timeout_ms) override;
  void serve(std::span<const pollfd> polled) override;
  void say(const NodeMessage& message) override;
  std::optional<NodeMessage> next() override;

 private:
  using Clock = NodeLink::Clock;

  void connect();
  void connect_again(std::string why);
  void refused();
  void hear();
  void tick();
  void wait_on();
  void end(const std::string& words);

  Settings settings_;
  Meeting meeting_;
  std::string options_;
  std::unique_ptr<NodeLink> link_;
  bool arrived_ = false;      // node 0 has been reached, and told who this is
  std::size_t attempts_ = 0;  // to reach it
  std::string last_error_;
  Clock::time_point connect_at_ = Clock::now(), next_tick_ = Clock::now();
  bool running_ = false;  // ranks have been ordered to start, and have not ended
  bool stopped_ = false;  // by the user of this host
  Clock::time_point answer_by_ = Clock::time_point::max();
  bool over_ = false;
  std::deque<NodeMessage> orders_;
  Clock::duration warn_after_;
};

}  // namespace tutti::internal::tools
