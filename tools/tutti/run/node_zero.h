// Node 0 of a job: it decides, and tells the others.
#pragma once

#include <chrono>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "control/meeting.h"
#include "run/course.h"
#include "run/node_link.h"
#include "run/nodes.h"

namespace tutti::internal::tools {

class NodeZero final : public Nodes {
 public:
  explicit NodeZero(Course course);  // of one host
  NodeZero(Course course, const Settings& settings, Meeting meeting);

  void await(std::vector<pollfd>& fds, int& timeout_ms) override;
  void serve(std::span<const pollfd> polled) override;
  void say(const NodeMessage& message) override;
  std::optional<NodeMessage> next() override;

 private:
  using Clock = NodeLink::Clock;
  using Link = std::unique_ptr<NodeLink>;
  struct Caller {  // who has not said yet which node it is
    Link link;
    Clock::time_point deadline;
    bool is_over = false;  // it has been taken in, or turned away
  };

  void accept_at(int listener);
  void hear_callers();
  void hear(Caller& caller);
  void hear_nodes();
  void tick();
  void give_orders();
  bool has_links() const;
  std::string objection_to(int node) const;

  Course course_;
  Settings settings_;
  Meeting meeting_;
  std::deque<Caller> callers_;
  std::vector<Link> links_;  // by node; none: of node 0, and of those that have not come or are lost
  std::deque<NodeMessage> own_;
  Clock::time_point next_tick_ = Clock::now();
  Clock::duration warn_after_;
  Clock::time_point accept_again_{};               // where no descriptor was left
  std::optional<Clock::time_point> linger_until_;  // since node 0 itself was told that the job is over
};

}  // namespace tutti::internal::tools
