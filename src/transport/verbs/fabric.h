// What a channel needs of RDMA, and no more: reliable-connected queue pairs that write into each other's memory and
// tell of it. Behind it stands a device (device.h), or in tests a fake one.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace tutti::internal::verbs {

// Memory that the fabric may touch, while this lives.
class Registration {
 public:
  virtual ~Registration() = default;
  virtual std::uint32_t local_key() const = 0;
  virtual std::uint32_t remote_key() const = 0;
};

// Bytes to be sent: registered, unless they go inline (QueuePair::most_inline()), where the key does not matter.
struct Piece {
  const std::byte* data;
  std::size_t bytes;
  std::uint32_t local_key;
};

// Where they go at the peer.
struct Place {
  std::uint64_t address;
  std::uint32_t remote_key;
};

struct Event {
  enum class Kind : std::uint8_t {
    done,     // of this rank's writes all up to number `count` are done: their memory is free, the peer has the bytes
    arrived,  // the peer's next write that brings a word: `word`, and the `bytes` that it has written
    failed,   // nothing more will come of this queue pair; see QueuePair::why()
  };
  Kind kind;
  std::uint64_t count = 0;
  std::uint32_t word = 0;
  std::size_t bytes = 0;
};

class QueuePair {
 public:
  virtual ~QueuePair() = default;

  // What the peer's connect() needs to know of this one.
  static constexpr std::size_t kAddressBytes = 40;
  using Address = std::array<std::byte, kAddressBytes>;
  virtual Address address() const = 0;
  // From then on the peer's writes are taken in. Throws Error{system}.
  virtual void connect(const Address& peer) = 0;

  // A write of all pieces (at most 2) one behind the other. With a word, the peer hears of it once they are there, in
  // the order of the writes; without, it does not.
  struct Write {
    std::span<const Piece> pieces;
    Place to;
    bool tells = true;
    std::uint32_t word = 0;
    bool awaited = false;  // a `done` is to come for it soon; without, only for some
  };
  // Numbered from 1. Pieces of at most most_inline() bytes together are taken at once, whatever their keys; others are
  // lent until a `done` covers the number. False: no room now, poll. A peer that the writes outnumber (more than
  // Sizes::arrivals that it has not polled) is the caller's to prevent.
  virtual bool write(const Write& write) = 0;
  virtual std::uint64_t written() const = 0;  // the number of the last write
  virtual std::size_t most_inline() const = 0;

  virtual std::size_t poll(std::span<Event> events) = 0;
  virtual const std::string& why() const = 0;

  // The next event that comes makes Fabric::bell() readable, once: those that wait to be polled already need not. Cheap
  // where it is armed already.
  virtual void arm() = 0;

  // From then on the peer's writes reach no memory of this rank's, and none of it is read.
  virtual void close() = 0;
};

class Fabric {
 public:
  virtual ~Fabric() = default;

  struct Sizes {
    std::uint32_t writes;    // under way at most
    std::uint32_t arrivals;  // writes with a word that the peer may send without this rank polling
  };
  // Throws Error{system} in words that say what to do.
  virtual std::unique_ptr<QueuePair> queue_pair(const Sizes& sizes) = 0;
  virtual std::unique_ptr<Registration> register_memory(std::byte* data, std::size_t bytes) = 0;

  virtual std::size_t most_in_a_write() const = 0;  // bytes

  virtual int bell() const = 0;  // an fd for epoll, edge-triggered
  virtual void hush() = 0;       // takes what has rung: before arming, for who rang is armed no more

  // Why nothing can be expected of the device now; empty while all is well. Queue pairs of which the device has told
  // that they failed say so when next polled. A system call.
  virtual std::string error_text() = 0;
};

}  // namespace tutti::internal::verbs
