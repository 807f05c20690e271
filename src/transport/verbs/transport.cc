#include "transport/verbs/transport.h"

#include <deque>

#include "transport/verbs/channel.h"

namespace tutti::verbs {

void try_out(Fabric& fabric, std::size_t peers) {
  std::deque<Block> blocks;
  while (blocks.size() < peers) blocks.emplace_back(fabric);
  fabric.queue_pair({kWrites, kArrivals});
}

Transport::Transport(Sleeper& sleeper, std::shared_ptr<Fabric> fabric)
    : sleeper_(sleeper), fabric_(std::move(fabric)), mailboxes_(sleeper), registry_(fabric_) {
  sleeper_.watch(fabric_->bell());
}

Transport::~Transport() { sleeper_.forget(fabric_->bell()); }

std::unique_ptr<tutti::Channel> Transport::channel(std::uint64_t communicator, int rank, int peer) {
  (void)rank;  // both ends of a connection know who they are
  return std::make_unique<Channel>(*this, communicator, peer);
}

void Transport::before_sleep() {
  fabric_->hush();
  for (Channel* channel : channels_) channel->arm();
}

void Transport::after_sleep() {
  const std::string trouble = channels_.empty() ? "" : fabric_->trouble();
  for (Channel* channel : channels_) channel->look_after_sleep(trouble);
}

}  // namespace tutti::verbs
