#include "run/course.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace tutti::internal::tools {

using Kind = NodeMessage::Kind;

Course::Course(int nodes, int max_restarts, std::string options)
    : nodes_(static_cast<std::size_t>(nodes)), max_restarts_(max_restarts), options_(std::move(options)) {
  nodes_[0].present = true;
  if (all_have_come()) start(0);
}

void Course::received(int node, const NodeMessage& message) {
  switch (message.kind) {
    case Kind::arrival: return arrived(node, message.words);
    case Kind::failed: return failed(node, message);
    case Kind::ended: return ended(node, message);
    case Kind::stop:
      return give_up(node, fmt::format("node {}: {}", node, message.words),
                     nodes() == 1 ? "" : fmt::format("the job was ended on node {}: {}", node, message.words));
    default: return;
  }
}

void Course::arrived(int node, const std::string& options) {
  nodes_[static_cast<std::size_t>(node)].present = true;
  if (last_words_) return conclude();
  if (options != options_) {
    const std::string why = fmt::format("node {} was started with `{}`, node 0 with `{}`: give every launcher the same",
                                        node, options, options_);
    return give_up(-1, why, why);
  }
  if (gathering_ && all_have_come()) start(0);
}

// Ranks on other nodes fail because of the first: only that one counts.
void Course::failed(int node, const NodeMessage& message) {
  if (!nodes_[static_cast<std::size_t>(node)].running || message.attempt != attempt_ || !failure_.empty()) return;
  failure_ = fmt::format("node {}: {}", node, message.words);
  if (!last_words_) end_ranks(node, failure_);
}

void Course::ended(int node, const NodeMessage& message) {
  Node& there = nodes_[static_cast<std::size_t>(node)];
  if (!there.running || message.attempt != attempt_) return;
  there.running = false;
  status_ = std::max(status_, static_cast<int>(message.status));
  if (message.status != 0 && failure_.empty()) failure_ = fmt::format("node {}: a rank ended badly", node);
  conclude();
}

void Course::lost(int node, const std::string& why) {
  Node& there = nodes_[static_cast<std::size_t>(node)];
  if (!there.present) return;
  there = Node{};
  if (last_words_) return conclude();
  const std::string words = fmt::format("node {} is lost ({})", node, why);
  give_up(node, words, "the job has failed: " + words);
}

void Course::warn(const std::string& waited) {
  for (int node = 0; node < nodes(); ++node)
    if (nodes_[static_cast<std::size_t>(node)].present)
      tell(node, Kind::ping, fmt::format("waiting for the launcher of node {} since {}", missing(), waited));
}

void Course::overdue(const std::string& waited) {
  if (!gathering_) return;
  const std::string why = fmt::format(
      "the launcher of node {} did not come within {}: was `tutti run` started there, with the same --master-addr, "
      "--master-port and --max-restarts, and the same secret? (TUTTI_JOIN_TIMEOUT)",
      missing(), waited);
  give_up(-1, why, why);
}

void Course::start(int attempt) {
  gathering_ = false;
  attempt_ = attempt;
  status_ = 0;
  failure_.clear();
  for (int node = 0; node < nodes(); ++node) {
    nodes_[static_cast<std::size_t>(node)].running = true;
    tell(node, Kind::start, "");
  }
}

void Course::end_ranks(int except, const std::string& words) {
  for (int node = 0; node < nodes(); ++node)
    if (node != except && nodes_[static_cast<std::size_t>(node)].running) tell(node, Kind::end, words);
}

// node: it ends its ranks itself, or has none any more.
void Course::give_up(int node, const std::string& why, const std::string& last_words) {
  if (last_words_) return;
  last_words_ = last_words;
  gathering_ = false;
  status_ = std::max(status_, 1);
  end_ranks(node, why);
  conclude();
}

void Course::conclude() {
  const bool any_runs = std::ranges::any_of(nodes_, &Node::running);
  if (!last_words_) {
    if (any_runs || gathering_) return;
    if (status_ != 0 && attempt_ < max_restarts_) return start(attempt_ + 1);
    last_words_ = "";
    if (status_ != 0 && nodes() > 1)
      last_words_ = fmt::format(
          "the job has failed: {} used up. {}",
          max_restarts_ == 1 ? "its one restart is" : fmt::format("all its {} restarts are", max_restarts_), failure_);
  }
  dismiss();
}

void Course::dismiss() {
  for (int node = nodes() - 1; node >= 0; --node) {
    Node& there = nodes_[static_cast<std::size_t>(node)];
    if (!there.present || there.running || there.told) continue;
    if (node == 0 && std::ranges::any_of(nodes_, [](const Node& other) { return other.running; })) continue;
    there.told = true;
    tell(node, Kind::over, *last_words_);
  }
}

std::string Course::missing() const {
  std::string text;
  for (int node = 0; node < nodes(); ++node)
    if (!nodes_[static_cast<std::size_t>(node)].present) text += fmt::format("{}{}", text.empty() ? "" : ", ", node);
  return text;
}

bool Course::all_have_come() const { return std::ranges::all_of(nodes_, &Node::present); }

void Course::tell(int node, Kind kind, const std::string& words) {
  outgoing_.push_back({node, {kind, attempt_, status_, words}});
}

std::vector<Course::Outgoing> Course::take_outgoing() { return std::exchange(outgoing_, {}); }

}  // namespace tutti::internal::tools
