#include "transport/shm/peers.h"

#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "transport/shm/handover.h"
#include "transport/transport.h"

namespace tutti::internal::shm {

Peers::~Peers() {
  for (const auto& [peer, fd] : exchanging_)
    if (fd >= 0) ::close(fd);
}

void Peers::attach(int peer, int fd) {
  const std::lock_guard lock(mutex_);
  const auto [entry, fresh] = exchanging_.try_emplace(peer, fd);
  if (!fresh) {
    ::close(fd);
    return;
  }
  if (!give(fd, own_, sleeper_.bell()))
    failed_[peer] = std::string("cannot hand over shared memory: ") + std::strerror(errno);
}

void Peers::fail(int peer, const std::string& why) {
  const std::lock_guard lock(mutex_);
  failed_[peer] = why;
}

std::shared_ptr<Peer> Peers::find(int peer) {
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

void Peers::look() {
  const std::lock_guard lock(mutex_);
  for (const auto& [rank, peer] : peers_)
    if (!peer->gone.load(std::memory_order_relaxed)) peer->look();
}

}  // namespace tutti::internal::shm
