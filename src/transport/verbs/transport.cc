#include "transport/verbs/transport.h"

#include <deque>

#include "transport/verbs/block.h"
#include "transport/verbs/channel.h"

namespace tutti::internal::verbs {

void try_out(Fabric& fabric, std::size_t peers) {
  std::deque<Block> blocks;
  while (blocks.size() < peers) blocks.emplace_back(fabric);
  fabric.queue_pair({kWrites, kArrivals});
}

Transport::Transport(Sleeper& sleeper, std::shared_ptr<Fabric> fabric) : endpoint_(sleeper, std::move(fabric)) {
  endpoint_.sleeper.watch(endpoint_.fabric->bell());
}

Transport::~Transport() { endpoint_.sleeper.unwatch(endpoint_.fabric->bell()); }

std::unique_ptr<internal::Channel> Transport::channel(std::uint64_t communicator, int rank, int peer) {
  (void)rank;  // both ends of a connection know who they are
  return std::make_unique<Channel>(endpoint_, communicator, peer);
}

void Transport::before_sleep() {
  endpoint_.fabric->hush();
  for (Channel* channel : endpoint_.channels) channel->arm();
}

void Transport::after_sleep() {
  const std::string error_text = endpoint_.channels.empty() ? "" : endpoint_.fabric->error_text();
  for (Channel* channel : endpoint_.channels) channel->look_after_sleep(error_text);
}

}  // namespace tutti::internal::verbs
