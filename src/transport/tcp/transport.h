// TCP: one connection for each communicator and pair of its ranks. Resolving, connecting, accepting and authenticating
// are the control thread's; what arrives here is a connected, authenticated, non-blocking socket.
//
// Credit: a connection belongs to one communicator, and hardly more is read from it than what has been claimed, so the
// kernel's socket buffers and TCP's own flow control are the credit. What a communicator leaves unread fills its own
// connection only.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "transport/mailbox.h"
#include "transport/sleeper.h"
#include "transport/transport.h"

namespace tutti::internal::tcp {

// One rank's end. Its channels start without a connection; until one is attached, messages wait.
class Transport final : public internal::Transport {
 public:
  explicit Transport(Sleeper& sleeper) : sleeper_(sleeper), mailboxes_(sleeper) {}

  std::string_view name() const override { return "tcp"; }
  std::unique_ptr<internal::Channel> channel(std::uint64_t communicator, int rank, int peer) override;

  // What became of the connection for channel(communicator, _, peer), which may be made before or after. Both are
  // thread-safe and wake the sleeper.
  // attach() takes the fd; of several the first is kept. After fail() the channel still delivers what has already
  // arrived; then whatever waits throws ChannelClosed{why}.
  void attach(std::uint64_t communicator, int peer, int fd) { mailboxes_.attach(communicator, peer, fd); }
  void fail(std::uint64_t communicator, int peer, const std::string& why) { mailboxes_.fail(communicator, peer, why); }

 private:
  Sleeper& sleeper_;
  Mailboxes mailboxes_;
};

}  // namespace tutti::internal::tcp
