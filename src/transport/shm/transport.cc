#include "transport/shm/transport.h"

#include <linux/membarrier.h>
#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <thread>

#include "transport/shm/channel.h"
#include "tutti/error.h"

namespace tutti::shm {
namespace {

bool membarrier(int command) { return ::syscall(SYS_membarrier, command, 0, 0) == 0; }

}  // namespace

// Where the kernel does not offer it (or a sandbox forbids it), peers fence their turns themselves, and a store that
// has not left its processor after a millisecond there is not.
void barrier_everywhere() {
  if (!membarrier(MEMBARRIER_CMD_GLOBAL_EXPEDITED)) std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

Peer::~Peer() {
  if (bell >= 0) ::close(bell);
  if (socket >= 0) ::close(socket);
}

void Peer::look() {
  pollfd end{.fd = socket, .events = POLLRDHUP, .revents = 0};
  if (::poll(&end, 1, 0) > 0) gone.store(true, std::memory_order_release);
}

Transport::Transport(Sleeper& sleeper, std::size_t ring_bytes)
    : sleeper_(sleeper),
      ring_bytes_(ring_bytes),
      own_(Segment::create()),
      others_make_barriers_(membarrier(MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED)) {}

Transport::~Transport() {
  for (const auto& [peer, fd] : exchanging_)
    if (fd >= 0) ::close(fd);
}

std::unique_ptr<tutti::Channel> Transport::channel(std::uint64_t communicator, int rank, int peer) {
  return std::make_unique<Channel>(*this, communicator, rank, peer);
}

// Every rank that runs passes a full barrier here, so a peer that wrote before it is seen by the look that follows, and
// one that writes after it sees the flag.
void Transport::before_sleep() {
  own_->header().sleeping.store(1, std::memory_order_seq_cst);
  barrier_everywhere();
  look_at_peers();
}

void Transport::look_at_peers() {
  const std::lock_guard lock(mutex_);
  for (const auto& [rank, peer] : peers_)
    if (!peer->gone.load(std::memory_order_relaxed)) peer->look();
}

void Transport::after_sleep() { own_->header().sleeping.store(0, std::memory_order_relaxed); }

void Transport::attach(int peer, int fd) {
  const std::lock_guard lock(mutex_);
  const auto [entry, fresh] = exchanging_.try_emplace(peer, fd);
  if (!fresh) {
    ::close(fd);
    return;
  }
  if (!give(fd, *own_, sleeper_.bell()))
    failed_[peer] = std::string("cannot hand over shared memory: ") + std::strerror(errno);
}

void Transport::fail(int peer, const std::string& why) {
  const std::lock_guard lock(mutex_);
  failed_[peer] = why;
}

std::shared_ptr<Peer> Transport::find(int peer) {
  const std::lock_guard lock(mutex_);
  if (const auto known = peers_.find(peer); known != peers_.end()) return known->second;
  if (const auto failed = failed_.find(peer); failed != failed_.end()) throw ChannelClosed{peer, failed->second};
  const auto exchange = exchanging_.find(peer);
  if (exchange == exchanging_.end()) return nullptr;
  auto who = take(exchange->second, peer);
  if (who != nullptr) {
    who->socket = std::exchange(exchange->second, -1);
    sleeper_.watch(who->socket);
    peers_[peer] = who;
  }
  return who;
}

std::shared_ptr<std::byte> Transport::allocate(std::size_t bytes) {
  const std::uint64_t offset = own_->allocate(bytes);
  return {own_->at(offset), [segment = own_, offset, bytes](std::byte*) { segment->free(offset, bytes); }};
}

bool Transport::is_symmetric(const void* data, std::size_t bytes, std::uint64_t& offset) const {
  return own_->holds(data, bytes, offset);
}

}  // namespace tutti::shm
