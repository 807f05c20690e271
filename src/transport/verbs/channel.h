// A queue pair's two ends as a channel, and the socket beside it: over the socket the two ends tell each other how to
// be reached, and its end is how a peer's is noticed.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "transport/mailbox.h"
#include "transport/transport.h"
#include "transport/verbs/block.h"
#include "transport/verbs/line.h"
#include "transport/verbs/receiver.h"
#include "transport/verbs/sender.h"
#include "transport/verbs/transport.h"

namespace tutti::verbs {

class Channel final : public tutti::Channel {
 public:
  Channel(Transport& transport, std::uint64_t communicator, int peer);
  // What has been sent still arrives, if the peer takes it within a second.
  ~Channel() override;

  void send(const Tag& tag, const std::byte* data, std::size_t bytes) override;
  std::uint64_t sent() override;
  std::byte* reserve(const Tag&, std::size_t, const std::byte*) override { return nullptr; }
  void commit(const Tag&) override {}
  void check_reserved() override {}
  void receive(std::uint64_t message, const Tag& tag, std::byte* data, std::size_t bytes, bool) override;
  std::uint64_t received() override;
  bool view(const Tag& tag, std::size_t bytes, std::span<const std::byte>& here) override;
  void release(std::size_t bytes) override;
  bool progress() override;
  void flush() override {
    if (line_ && failed_.empty()) receiver_.tell(*line_);
  }
  bool unclaimed(Tag& tag) override;
  bool withdraw() override;

  // Before this rank sleeps, and after it.
  void arm() {
    if (pair_ != nullptr && !withdrawn_) pair_->arm();
  }
  void look_after_sleep(const std::string& trouble) {
    if (!line_ || !failed_.empty()) return;
    if (transport_.sleeper_.had_news(fd_)) look_for_hang_up();
    hear_of(trouble);
  }

 private:
  bool waits() const { return !sender_.idle() || receiver_.waits(); }
  bool pump();
  bool write();
  bool poll();
  bool take_in();
  void take_offers(std::size_t count);
  void look_for_news();
  void greet();
  bool hear();
  void look_for_hang_up();
  void hear_of(const std::string& trouble);
  void fail(const std::string& why);
  void leave();

  Transport& transport_;
  const std::uint64_t communicator_;
  const int peer_;
  const std::shared_ptr<Mailbox> mailbox_;
  int fd_ = -1;
  std::string failed_;  // why nothing more will come or go
  bool withdrawn_ = false;
  unsigned idle_ = 0;             // polls in a row that brought nothing
  unsigned unpolled_ = 0;         // questions in a row after sends that were over, and answered without a poll
  bool stirred_ = true;           // there may be something to absorb, to write or to tell, beyond what polling does
  std::array<Event, 32> events_;  // as polled: made once
  std::vector<std::byte> heard_;  // of the peer's greeting
  std::unique_ptr<Block> block_;  // outlives the queue pair
  std::unique_ptr<QueuePair> pair_;
  std::optional<Line> line_;  // once both ends are joined
  bool joined_ = false;       // this end is; the peer may not be
  Sender sender_;
  Receiver receiver_;
  std::uint64_t offers_heard_ = 0;
};

}  // namespace tutti::verbs
