#include "transport/tcp/transport.h"

#include "transport/tcp/channel.h"

namespace tutti::internal::tcp {

std::unique_ptr<internal::Channel> Transport::channel(std::uint64_t communicator, int rank, int peer) {
  (void)rank;  // both ends of a connection know who they are
  return std::make_unique<Channel>(sleeper_, mailboxes_, communicator, peer);
}

}  // namespace tutti::internal::tcp
