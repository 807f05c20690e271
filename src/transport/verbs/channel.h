// A connection's two halves. Every public member first looks what has come of the connection.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>

#include "transport/transport.h"
#include "transport/verbs/connection.h"
#include "transport/verbs/endpoint.h"
#include "transport/verbs/receiver.h"
#include "transport/verbs/sender.h"

namespace tutti::internal::verbs {

class Channel final : public internal::Channel {
 public:
  // `endpoint`, the rank's, outlives this.
  Channel(Endpoint& endpoint, std::uint64_t communicator, int peer);
  // What has been sent still arrives, if the peer takes it within a second.
  ~Channel() override;

  void send(const Tag& tag, const std::byte* data, std::size_t bytes, Copier copier) override;
  std::uint64_t sent() override;
  std::byte* reserve(const Tag&, std::size_t, const std::byte*, Copier, bool) override { return nullptr; }
  void commit(const Tag&) override {}
  void check_reserved() override {}
  void receive(std::uint64_t message, const Tag& tag, std::byte* data, std::size_t bytes,
               const ReceiveHints& hints) override;
  std::uint64_t received() override;
  bool view(const Tag& tag, std::size_t bytes, std::span<const std::byte>& here) override;
  void release(std::size_t bytes) override;
  bool progress() override;
  void flush() override {
    if (connection_.is_usable()) receiver_.tell(connection_.joined());
  }
  bool unclaimed(Tag& tag) override;
  bool withdraw() override;

  // Before this rank sleeps, and after it.
  void arm() {
    if (!withdrawn_) connection_.arm();
  }
  void look_after_sleep(const std::string& error_text) {
    if (!connection_.is_usable()) return;
    if (connection_.had_news()) connection_.look_for_hang_up();
    hear_of(error_text);
  }

 private:
  bool waits() const { return !sender_.idle() || receiver_.waits(); }
  bool pump();
  bool write();
  bool poll();
  bool take_in();
  void take_offers(std::size_t count);
  void hear_of(const std::string& error_text);
  void leave();

  Endpoint& endpoint_;
  const int peer_;
  bool withdrawn_ = false;
  unsigned idle_ = 0;             // polls in a row that brought nothing
  unsigned unpolled_ = 0;         // questions in a row after sends that were over, and answered without a poll
  bool stirred_ = true;           // there may be something to absorb, to write or to tell, beyond what polling does
  std::array<Event, 32> events_;  // as polled: made once
  std::uint64_t offers_heard_ = 0;
  Sender sender_;
  Receiver receiver_;
  Connection connection_;  // ends first: its queue pair is closed when the two above let go of registered memory
};

}  // namespace tutti::internal::verbs
