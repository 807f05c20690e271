// The course of a job over its hosts, as node 0 decides it: when ranks start, when they end, and when the job is over.
// Sans-I/O: what nodes say goes in, orders to them come out. Node 0 is told as the others are.
//
//   gathering    until every node has come
//   attempt k    start to all; the first failure ends it everywhere; the next begins when no rank is left on any node
//   over         by success, by the last failure, by the user, or by a node that is lost. A node hears it as soon as
//                its ranks have ended, node 0 last
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "run/node_message.h"

namespace tutti::internal::tools {

class Course {
 public:
  // options: what all nodes must have alike, in words.
  Course(int nodes, int max_restarts, std::string options);

  void received(int node, const NodeMessage& message);
  void lost(int node, const std::string& why);
  void warn(const std::string& waited);     // "5 s" of gathering have passed: who is missing is told to those that came
  void overdue(const std::string& waited);  // "60 s", all the time that there is for it

  struct Outgoing {
    int node;
    NodeMessage message;
  };
  std::vector<Outgoing> take_outgoing();

  bool is_gathering() const { return gathering_; }
  int nodes() const { return static_cast<int>(nodes_.size()); }
  const std::string& options() const { return options_; }

 private:
  struct Node {
    bool present = false;
    bool running = false;  // it has ranks of this attempt
    bool told = false;     // that the job is over
  };
  void arrived(int node, const std::string& options);
  void failed(int node, const NodeMessage& message);
  void ended(int node, const NodeMessage& message);
  void start(int attempt);
  void end_ranks(int except, const std::string& words);
  void give_up(int node, const std::string& why, const std::string& last_words);
  void conclude();
  void dismiss();
  bool all_have_come() const;
  std::string missing() const;  // "1", "1, 3": nodes
  void tell(int node, NodeMessage::Kind kind, const std::string& words);

  std::vector<Node> nodes_;
  int max_restarts_;
  std::string options_;
  bool gathering_ = true;
  int attempt_ = 0;
  int status_ = 0;                         // of this attempt
  std::string failure_;                    // the first of this attempt
  std::optional<std::string> last_words_;  // once there will be no other attempt
  std::vector<Outgoing> outgoing_;
};

}  // namespace tutti::internal::tools
