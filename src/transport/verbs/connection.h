// How the two ends of a channel are joined: a queue pair each, and the socket beside them. Over the socket the ends
// tell each other how to be reached, and its end is how a peer's is noticed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "transport/mailbox.h"
#include "transport/verbs/block.h"
#include "transport/verbs/endpoint.h"
#include "transport/verbs/fabric.h"
#include "transport/verbs/joined_pair.h"

namespace tutti::internal::verbs {

class Connection {
 public:
  Connection(Endpoint& endpoint, std::uint64_t communicator, int peer);
  ~Connection();  // the peer's writes reach no memory of this rank's from then on
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  // Takes in what the control thread and the peer have told of the connection, and answers. Whether both ends are
  // joined by now. Never blocks.
  bool join() { return (is_joined() && !mailbox_->has_news()) || take_news(); }
  bool is_joined() const { return joined_.has_value(); }
  bool is_usable() const { return is_joined() && failed_.empty(); }

  // Once joined.
  JoinedPair& joined() { return *joined_; }
  QueuePair& pair() { return *pair_; }
  const Block& block() const { return *block_; }

  // Why nothing more will come or go; empty while all is well. Of several reasons the first is kept.
  const std::string& failed() const { return failed_; }
  void fail(const std::string& why) {
    if (failed_.empty()) failed_ = why;
  }
  // A system call: whether the peer has closed its socket, which is a failure.
  void look_for_hang_up();
  // Whether the socket was among what ended the last sleep.
  bool had_news() const { return endpoint_.sleeper.had_news(fd_); }

  // As of QueuePair, if there is one yet.
  void arm() {
    if (pair_ != nullptr) pair_->arm();
  }
  bool has_pair() const { return pair_ != nullptr; }

 private:
  bool take_news();
  void begin();
  void greet();
  bool hear();

  Endpoint& endpoint_;
  const std::uint64_t communicator_;
  const int peer_;
  const std::shared_ptr<Mailbox> mailbox_;
  int fd_ = -1;
  std::string failed_;
  std::vector<std::byte> heard_;  // of the peer's greeting
  bool is_reachable_ = false;     // the peer has been told that this end is joined; the peer's may not be
  std::unique_ptr<Block> block_;  // outlives the queue pair
  std::unique_ptr<QueuePair> pair_;
  std::optional<JoinedPair> joined_;  // once both ends are joined
};

}  // namespace tutti::internal::verbs
