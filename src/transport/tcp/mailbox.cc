#include "transport/tcp/mailbox.h"

#include <unistd.h>

#include <utility>

namespace tutti::tcp {

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

}  // namespace tutti::tcp
