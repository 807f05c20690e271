#include "transport/tcp/transport.h"

#include "transport/tcp/channel.h"

namespace tutti::tcp {

std::unique_ptr<tutti::Channel> Transport::channel(std::uint64_t communicator, int rank, int peer) {
  (void)rank;  // both ends of a connection know who they are
  return std::make_unique<Channel>(*this, communicator, peer);
}

void Transport::attach(std::uint64_t communicator, int peer, int fd) {
  mailbox(communicator, peer)->connected(fd);
  sleeper_.ring();
}

void Transport::fail(std::uint64_t communicator, int peer, const std::string& why) {
  mailbox(communicator, peer)->failed(why);
  sleeper_.ring();
}

std::shared_ptr<Mailbox> Transport::mailbox(std::uint64_t communicator, int peer) {
  const std::lock_guard lock(mutex_);
  std::shared_ptr<Mailbox>& mailbox = mailboxes_[{communicator, peer}];
  if (!mailbox) mailbox = std::make_shared<Mailbox>();
  return mailbox;
}

void Transport::drop_mailbox(std::uint64_t communicator, int peer) {
  const std::lock_guard lock(mutex_);
  mailboxes_.erase({communicator, peer});
}

}  // namespace tutti::tcp
