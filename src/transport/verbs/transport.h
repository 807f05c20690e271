// RDMA verbs: a reliable-connected queue pair for each communicator and pair of its ranks, made when first needed. All
// data goes by RDMA writes with a word (an immediate) that tells the peer of it; layout.h says where to and how much.
// Finding, authenticating and telling of the end of a peer are the control thread's, by a socket beside the queue pair.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "transport/sleeper.h"
#include "transport/transport.h"
#include "transport/verbs/endpoint.h"
#include "transport/verbs/fabric.h"
#include "transport/verbs/registry.h"

namespace tutti::internal::verbs {

// Makes what channels to so many peers need of `fabric`, of queue pairs one, and lets it go. Throws Error{system} where
// that cannot be had.
void try_out(Fabric& fabric, std::size_t peers);

class Transport final : public internal::Transport {
 public:
  Transport(Sleeper& sleeper, std::shared_ptr<Fabric> fabric);
  ~Transport() override;

  std::string_view name() const override { return "verbs"; }
  std::unique_ptr<internal::Channel> channel(std::uint64_t communicator, int rank, int peer) override;
  void before_sleep() override;
  void after_sleep() override;

  // As of tcp::Transport. The socket carries the greeting, then nothing, until it ends.
  void attach(std::uint64_t communicator, int peer, int fd) { endpoint_.mailboxes.attach(communicator, peer, fd); }
  void fail(std::uint64_t communicator, int peer, const std::string& why) {
    endpoint_.mailboxes.fail(communicator, peer, why);
  }

  std::shared_ptr<void> register_memory(std::byte* data, std::size_t bytes) override {
    return endpoint_.registry.add(data, bytes);
  }

  // Memory that messages are sent from and written to where they lie. Thread-safe.
  Registry& registry() { return endpoint_.registry; }

  // What this rank holds: queue pairs, and bytes registered for them (pairs * kBlockBytes).
  std::size_t queue_pairs() const { return endpoint_.queue_pairs; }

 private:
  Endpoint endpoint_;
};

}  // namespace tutti::internal::verbs
