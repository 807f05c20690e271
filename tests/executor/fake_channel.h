// A channel whose every freedom is used at random: when a message moves, how much of it, whether it is buffered,
// whether a reservation is refused, when a loan is known to be back.
#pragma once

#include <deque>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "schedule/interpret_transfer.h"
#include "transport/transport.h"

namespace tutti::internal {

// One direction between two ranks. Throws RunError where a contract of internal::Channel is broken.
class Wire {
 public:
  explicit Wire(Dice& dice) : dice_(dice) {}

  void send(const Tag& tag, const std::byte* data, std::size_t bytes);
  std::uint64_t sent();
  std::uint64_t published();
  std::byte* reserve(const Tag& tag, std::size_t bytes);
  void commit(const Tag& tag);

  void receive(std::uint64_t message, const Tag& tag, std::byte* data, std::size_t bytes);
  std::uint64_t received();
  bool view(const Tag& tag, std::size_t bytes, std::span<const std::byte>& here);
  void release(std::size_t bytes);

  bool can_move() const { return !movable().empty(); }
  void move();           // a piece of some message
  bool is_over() const;  // every message has been taken, and nobody waits for more

 private:
  struct Message {
    Tag tag;
    const std::byte* data = nullptr;  // lent, or in `buffer`
    std::size_t bytes = 0;
    std::vector<std::byte> buffer;
    bool buffers = false;     // it is being copied into `buffer`
    std::size_t moved = 0;    // bytes copied: into `buffer`, then into the receiver's memory
    bool given_back = false;  // to the sender
    bool delivered = false;   // wholly in the receiver's memory, or released
  };
  struct Claim {
    Tag tag;
    std::byte* data = nullptr;  // nullptr: viewed
    std::size_t bytes = 0;
  };
  std::vector<std::size_t> movable() const;  // numbers of messages
  void check_claim(const Claim& claim, std::size_t number, const Tag& tag, std::size_t bytes) const;
  std::size_t first_undelivered() const;

  Dice& dice_;
  std::deque<Message> messages_;
  std::map<std::uint64_t, Claim> claims_;
  std::vector<std::uint64_t> posted_;
  std::optional<std::uint64_t> viewing_;
  std::size_t shown_ = 0, released_ = 0;                                     // bytes of the message that is viewed
  std::uint64_t known_sent_ = 0, known_received_ = 0, known_published_ = 0;  // what has been reported: it may be old
  std::optional<Message> reserved_;
  bool reserved_in_place_ = false;
};

class FakeChannel final : public Channel {
 public:
  FakeChannel(Wire& out, Wire& in) : out_(out), in_(in) {}

  void send(const Tag& tag, const std::byte* data, std::size_t bytes, Copier) override { out_.send(tag, data, bytes); }
  std::uint64_t sent() override { return out_.sent(); }
  std::uint64_t published() override { return out_.published(); }
  std::byte* reserve(const Tag& tag, std::size_t bytes, const std::byte*, Copier, bool) override {
    return out_.reserve(tag, bytes);
  }
  void commit(const Tag& tag) override { out_.commit(tag); }
  void check_reserved() override {}
  void receive(std::uint64_t message, const Tag& tag, std::byte* data, std::size_t bytes,
               const ReceiveHints&) override {
    in_.receive(message, tag, data, bytes);
  }
  std::uint64_t received() override { return in_.received(); }
  bool view(const Tag& tag, std::size_t bytes, std::span<const std::byte>& here) override {
    return in_.view(tag, bytes, here);
  }
  void release(std::size_t bytes) override { in_.release(bytes); }
  bool progress() override { return false; }  // the wires move by themselves
  void flush() override {}
  bool unclaimed(Tag&) override { return false; }
  bool withdraw() override { return true; }

 private:
  Wire& out_;
  Wire& in_;
};

}  // namespace tutti::internal
