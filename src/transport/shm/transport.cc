#include "transport/shm/transport.h"

#include "transport/shm/barrier.h"
#include "transport/shm/channel.h"

namespace tutti::internal::shm {

Transport::Transport(Sleeper& sleeper, RingBytes ring_bytes)
    : ring_bytes_(ring_bytes),
      own_(Segment::create()),
      others_make_barriers_(join_barriers()),
      peers_(sleeper, *own_) {}

std::unique_ptr<internal::Channel> Transport::channel(std::uint64_t communicator, int rank, int peer) {
  if (!retired_.empty()) look_at_peers();  // one that has gone reads nothing
  retired_.free_read();
  retired_.expect_one();
  return std::make_unique<Channel>(std::make_unique<Lines>(*own_, peers_, ring_bytes_, communicator, rank, peer),
                                   retired_);
}

// Every rank that runs passes a full barrier here, so a peer that wrote before it is seen by the look that follows, and
// one that writes after it sees the flag.
void Transport::before_sleep() {
  own_->header().sleeping.store(1, std::memory_order_seq_cst);
  barrier_everywhere();
  look_at_peers();
}

void Transport::after_sleep() { own_->header().sleeping.store(0, std::memory_order_relaxed); }

std::shared_ptr<std::byte> Transport::allocate(std::size_t bytes) {
  const std::uint64_t offset = own_->allocate(bytes);
  return {own_->at(offset), [segment = own_, offset, bytes](std::byte*) { segment->free(offset, bytes); }};
}

}  // namespace tutti::internal::shm
