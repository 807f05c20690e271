// One rank's end of a kind of transport.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>

#include "transport/channel.h"

namespace tutti::internal {

// Owns what its channels share; outlives them. Used under the engine's lock,
// except where a member says otherwise.
class Transport {
 public:
  virtual ~Transport() = default;
  virtual std::string_view name() const = 0;

  // The channel to `peer` for communicator `communicator`, where this rank is `rank` of it. At most one per (peer,
  // communicator). The peer's end may not exist yet: messages wait.
  virtual std::unique_ptr<Channel> channel(std::uint64_t communicator, int rank, int peer) = 0;

  // A rank about to sleep on `Sleeper` says so first, then looks once more, then sleeps: peers that move something ring
  // it.
  virtual void before_sleep() {}
  virtual void after_sleep() {}

  // A rank touches what peers have lent it only in between. A turn does not wait for anybody. has_turns(): they do
  // something; of the transports of a job at most one has them.
  virtual bool has_turns() const { return false; }
  virtual void begin_turn() {}
  virtual void end_turn() {}

  // `bytes` of memory, a multiple of 4096, that peers can reach without a copy; the last owner gives it back. nullptr
  // where this transport has none. Throws Error{system}.
  virtual std::shared_ptr<std::byte> allocate(std::size_t bytes) {
    static_cast<void>(bytes);
    return nullptr;
  }
  // Makes memory of the caller such memory while the result lives, which may be longer than the transport. As
  // Communicator::adopt() says. nullptr where this transport has none. Thread-safe. Throws Error{invalid_argument,
  // system}.
  virtual std::shared_ptr<void> adopt(std::byte* data, std::size_t bytes) {
    static_cast<void>(data), static_cast<void>(bytes);
    return nullptr;
  }
  // Whether peers can read data[0, bytes) where it lies, as allocate() and adopt() have it. True as well if peers of
  // this transport never read a rank's memory. Under the engine's lock.
  virtual bool shares(const std::byte* data, std::size_t bytes) {
    static_cast<void>(data), static_cast<void>(bytes);
    return true;
  }
  // A peer may still touch memory of either kind, now or later: what is given back from now on is never used again, and
  // what was adopted is private again.
  virtual void keep_memory() {}

  // While the result lives, which may be longer than the transport, messages in data[0, bytes) are sent from there and
  // written there. nullptr where that makes no difference. Thread-safe. Throws Error{system}.
  virtual std::shared_ptr<void> register_memory(std::byte* data, std::size_t bytes) {
    static_cast<void>(data), static_cast<void>(bytes);
    return nullptr;
  }

  // Finds out which peers have gone. before_sleep() may do so too; a rank that never sleeps asks now and then.
  virtual void look_at_peers() {}
};

}  // namespace tutti::internal
