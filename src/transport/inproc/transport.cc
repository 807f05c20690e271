#include "transport/inproc/transport.h"

#include "transport/inproc/channel.h"

namespace tutti::internal::inproc {

Transport::Transport(std::shared_ptr<Hub> hub, Sleeper& sleeper) : hub_(std::move(hub)), self_{sleeper} {}

std::unique_ptr<internal::Channel> Transport::channel(std::uint64_t communicator, int rank, int peer) {
  return std::make_unique<Channel>(hub_, self_, communicator, rank, peer);
}

// Whoever moves something holds the same mutex: either we see what it moved, or it sees that we are asleep.
void Transport::before_sleep() {
  const std::lock_guard lock(hub_->mutex_);
  self_.asleep = true;
}

void Transport::after_sleep() {
  const std::lock_guard lock(hub_->mutex_);
  self_.asleep = false;
}

}  // namespace tutti::internal::inproc
