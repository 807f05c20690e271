#include "transport/verbs/transport.h"

#include <deque>

#include "transport/verbs/block.h"
#include "transport/verbs/channel.h"

namespace tutti::verbs {

void try_out(Fabric& fabric, std::size_t peers) {
  std::deque<Block> blocks;
  while (blocks.size() < peers) blocks.emplace_back(fabric);
  fabric.queue_pair({kWrites, kArrivals});
}

Transport::Transport(Sleeper& sleeper, std::shared_ptr<Fabric> fabric) : endpoint_(sleeper, std::move(fabric)) {
  endpoint_.sleeper.watch(endpoint_.fabric->bell());
}

Transport::~Transport() { endpoint_.sleeper.forget(endpoint_.fabric->bell()); }

std::unique_ptr<tutti::Channel> Transport::channel(std::uint64_t communicator, int rank, int peer) {
  (void)rank;  // both ends of a connection know who they are
  return std::make_unique<Channel>(endpoint_, communicator, peer);
}

void Transport::before_sleep() {
  endpoint_.fabric->hush();
  for (Channel* channel : endpoint_.channels) channel->arm();
}

void Transport::after_sleep() {
  const std::string trouble = endpoint_.channels.empty() ? "" : endpoint_.fabric->trouble();
  for (Channel* channel : endpoint_.channels) channel->look_after_sleep(trouble);
}

}  // namespace tutti::verbs
