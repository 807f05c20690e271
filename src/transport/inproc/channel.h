// A channel has two directions of the hub, one each way.
//
// The receiver moves the bytes: when a message and a posted receive have met, it copies straight from the sender's
// memory into its own; a view is the sender's memory itself. The sender writes only what it has reserved: a posted
// receive's memory.
#pragma once

#include <memory>
#include <optional>
#include <span>

#include "transport/inproc/hub.h"
#include "transport/transport.h"

namespace tutti::internal::inproc {

class Channel final : public internal::Channel {
 public:
  Channel(std::shared_ptr<Hub> hub, Resident& self, std::uint64_t communicator, int rank, int peer);

  // Withdraws what is still lent. The peer must not be looking at it: that is the caller's to know.
  ~Channel() override;

  void send(const Tag& tag, const std::byte* data, std::size_t bytes, Copier copier) override;
  std::uint64_t sent() override;
  std::byte* reserve(const Tag& tag, std::size_t bytes, const std::byte* source, Copier copier,
                     bool past_cache) override;
  void commit(const Tag& tag) override;
  void check_reserved() override;
  void receive(std::uint64_t message, const Tag& tag, std::byte* data, std::size_t bytes,
               const ReceiveHints& hints) override;
  std::uint64_t received() override;
  bool view(const Tag& tag, std::size_t bytes, std::span<const std::byte>& here) override;
  void release(std::size_t bytes) override;
  bool progress() override;
  void flush() override {}
  bool unclaimed(Tag& tag) override;
  bool withdraw() override;

 private:
  // These hold the hub's mutex.
  const Claim* front_met() const;  // the claim that the front message has come for; throws when they disagree
  bool fill(std::unique_lock<std::mutex>& lock);  // copies without the mutex; true if anything was filled
  void give_back_front();
  void check_receiver() const;
  static void wake(const Resident* resident);

  std::shared_ptr<Hub> hub_;
  Resident& self_;
  const Hub::Key out_key_, in_key_;
  const int peer_;
  std::shared_ptr<Direction> out_, in_;
  std::optional<std::uint64_t> withdrawn_in_;  // the peer's turn
  std::size_t released_ = 0;                   // bytes given back of the message that is viewed
};

}  // namespace tutti::internal::inproc
