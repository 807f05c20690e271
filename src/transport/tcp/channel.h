// A connection's two halves. Every public member first looks whether a connection has come.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "transport/mailbox.h"
#include "transport/sleeper.h"
#include "transport/tcp/receiver.h"
#include "transport/tcp/sender.h"
#include "transport/transport.h"

namespace tutti::internal::tcp {

class Channel final : public internal::Channel {
 public:
  // Its rank's sleeper and mailboxes, which outlive it.
  Channel(Sleeper& sleeper, Mailboxes& mailboxes, std::uint64_t communicator, int peer);
  ~Channel() override;  // what the kernel has taken still arrives; what has not is lost

  void send(const Tag& tag, const std::byte* data, std::size_t bytes, Copier copier) override;
  std::uint64_t sent() override;  // given back = handed to the kernel
  std::byte* reserve(const Tag&, std::size_t, const std::byte*, Copier, bool) override { return nullptr; }
  void commit(const Tag&) override {}
  void check_reserved() override {}
  void receive(std::uint64_t message, const Tag& tag, std::byte* data, std::size_t bytes,
               const ReceiveHints& hints) override;
  std::uint64_t received() override;
  bool view(const Tag& tag, std::size_t bytes, std::span<const std::byte>& here) override;
  void release(std::size_t bytes) override;
  bool progress() override;
  void flush() override {}
  bool unclaimed(Tag& tag) override;
  bool withdraw() override { return true; }  // no peer sees this rank's memory

 private:
  bool connected();
  bool write();
  bool fill();
  bool read();

  Sleeper& sleeper_;
  Mailboxes& mailboxes_;
  const std::uint64_t communicator_;
  const int peer_;
  const std::shared_ptr<Mailbox> mailbox_;
  int fd_ = -1;
  std::string failed_;  // why, once the control thread has given this connection up
  Sender sender_;
  Receiver receiver_;
};

}  // namespace tutti::internal::tcp
