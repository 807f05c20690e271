#include "transport/mailbox.h"

#include <unistd.h>

#include <utility>

namespace tutti::internal {

Mailbox::~Mailbox() {
  if (kept_.fd >= 0) close(kept_.fd);
}

void Mailbox::connected(int fd) {
  const std::lock_guard lock(mutex_);
  if (had_connection_) {
    close(fd);
    return;
  }
  had_connection_ = true;
  kept_.fd = fd;
  news_.store(true, std::memory_order_release);
}

void Mailbox::failed(const std::string& why) {
  const std::lock_guard lock(mutex_);
  if (!kept_.why.empty()) return;
  kept_.why = why;
  news_.store(true, std::memory_order_release);
}

Mailbox::News Mailbox::take() {
  const std::lock_guard lock(mutex_);
  news_.store(false, std::memory_order_relaxed);
  return {std::exchange(kept_.fd, -1), kept_.why};
}

std::shared_ptr<Mailbox> Mailboxes::of(std::uint64_t communicator, int peer) {
  const std::lock_guard lock(mutex_);
  std::shared_ptr<Mailbox>& mailbox = mailboxes_[{communicator, peer}];
  if (!mailbox) mailbox = std::make_shared<Mailbox>();
  return mailbox;
}

void Mailboxes::drop(std::uint64_t communicator, int peer) {
  const std::lock_guard lock(mutex_);
  mailboxes_.erase({communicator, peer});
}

void Mailboxes::attach(std::uint64_t communicator, int peer, int fd) {
  of(communicator, peer)->connected(fd);
  sleeper_.ring();
}

void Mailboxes::fail(std::uint64_t communicator, int peer, const std::string& why) {
  of(communicator, peer)->failed(why);
  sleeper_.ring();
}

}  // namespace tutti::internal
