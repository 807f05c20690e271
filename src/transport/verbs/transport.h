// RDMA verbs: a reliable-connected queue pair for each communicator and pair of its ranks, made when first needed. All
// data goes by RDMA writes with a word (an immediate) that tells the peer of it; layout.h says where to and how much.
// Finding, authenticating and telling of the end of a peer are the control thread's, by a socket beside the queue pair.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <string_view>

#include "transport/mailbox.h"
#include "transport/sleeper.h"
#include "transport/transport.h"
#include "transport/verbs/fabric.h"
#include "transport/verbs/registry.h"

namespace tutti::verbs {

class Channel;

// Makes what channels to so many peers need of `fabric`, of queue pairs one, and lets it go. Throws Error{system} where
// that cannot be had.
void try_out(Fabric& fabric, std::size_t peers);

class Transport final : public tutti::Transport {
 public:
  Transport(Sleeper& sleeper, std::shared_ptr<Fabric> fabric);
  ~Transport() override;

  std::string_view name() const override { return "verbs"; }
  std::unique_ptr<tutti::Channel> channel(std::uint64_t communicator, int rank, int peer) override;
  void before_sleep() override;
  void after_sleep() override;

  // As of tcp::Transport. The socket carries the greeting, then nothing, until it ends.
  void attach(std::uint64_t communicator, int peer, int fd) { mailboxes_.attach(communicator, peer, fd); }
  void fail(std::uint64_t communicator, int peer, const std::string& why) { mailboxes_.fail(communicator, peer, why); }

  std::shared_ptr<void> register_memory(std::byte* data, std::size_t bytes) override {
    return registry_.add(data, bytes);
  }

  // Memory that messages are sent from and written to where they lie. Thread-safe.
  Registry& registry() { return registry_; }

  // What this rank holds: queue pairs, and bytes registered for them (pairs * kBlockBytes).
  std::size_t queue_pairs() const { return pairs_; }

 private:
  friend class Channel;
  Sleeper& sleeper_;
  const std::shared_ptr<Fabric> fabric_;
  Mailboxes mailboxes_;
  Registry registry_;
  std::set<Channel*> channels_;
  std::size_t pairs_ = 0;
};

}  // namespace tutti::verbs
