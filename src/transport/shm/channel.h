// One communicator's path to one rank of the same host: a lane each way, with a sender and a receiver that share their
// lines.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>

#include "transport/shm/lines.h"
#include "transport/shm/receiver.h"
#include "transport/shm/retired.h"
#include "transport/shm/sender.h"
#include "transport/transport.h"

namespace tutti::internal::shm {

class Channel final : public internal::Channel {
 public:
  // `retired` outlives this, and what the lines refer to.
  Channel(std::unique_ptr<Lines> lines, Retired& retired)
      : lines_(lines.release(), Retired::Adder{&retired}), sender_(*lines_), receiver_(*lines_) {}

  void send(const Tag& tag, const std::byte* data, std::size_t bytes, Copier copier) override {
    sender_.send(tag, data, bytes, copier);
  }
  std::uint64_t sent() override { return sender_.has_all_back() ? sender_.sent() : sent_after_progress(); }
  std::uint64_t published() override;
  void keep(std::shared_ptr<void> memory) override {
    const Lent* const last = sender_.last_lent();
    if (last == nullptr) return;
    Retired::LentMemory& lent = lines_.get_deleter().lent;
    lent.memory.push_back(std::move(memory));
    lent.line = last->line;
  }
  std::byte* reserve(const Tag& tag, std::size_t bytes, const std::byte* source, Copier copier,
                     bool past_cache) override {
    return sender_.reserve(tag, bytes, source, copier, past_cache);
  }
  void commit(const Tag& tag) override { sender_.commit(tag); }
  bool reads_from_far(std::size_t bytes) override { return sender_.reads_from_far(bytes); }
  void check_reserved() override { sender_.check_reserved(); }
  void receive(std::uint64_t message, const Tag& tag, std::byte* data, std::size_t bytes,
               const ReceiveHints& hints) override {
    receiver_.receive(message, tag, data, bytes, hints);
  }
  std::uint64_t received() override { return receiver_.received(); }
  bool view(const Tag& tag, std::size_t bytes, std::span<const std::byte>& here) override {
    return receiver_.view(tag, bytes, here);
  }
  bool will_rewrite() const override { return receiver_.will_rewrite(); }
  void release(std::size_t bytes) override { receiver_.release(bytes); }
  std::optional<std::size_t> most_at_once() const override { return kMostAtOnceBytes; }
  bool prepare_at_once(const std::byte* data, std::size_t bytes, Copier copier) override {
    return sender_.prepare_at_once(data, bytes, copier);
  }
  void send_at_once(const Tag& tag, const std::byte* data, std::size_t bytes) override {
    sender_.send_at_once(tag, data, bytes);
  }
  const std::byte* look_at_once(const Tag& tag, std::size_t bytes) override {
    return receiver_.look_at_once(tag, bytes);
  }
  void take_at_once(std::byte* to, bool fetches_to_write) override { receiver_.take_at_once(to, fetches_to_write); }
  bool progress() override;
  void flush() override { lines_->flush(); }
  bool unclaimed(Tag& tag) override { return receiver_.unclaimed(tag); }
  bool withdraw() override { return lines_->lanes().withdraw(); }

 private:
  // Not inline, so that the usual sent() saves no registers: 8 instructions.
  [[gnu::noinline]] std::uint64_t sent_after_progress();

  std::unique_ptr<Lines, Retired::Adder> lines_;
  Sender sender_;
  Receiver receiver_;
};

}  // namespace tutti::internal::shm
