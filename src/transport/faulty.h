// A transport that misbehaves within its contract, and where asked beyond it: for tests of whatever stands on
// transports. The same seed and the same calls give the same faults.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>

#include "transport/transport.h"

namespace tutti::internal {

struct Faults {
  std::uint64_t seed = 1;

  // Within the contract.
  unsigned delay_calls = 0;            // what has moved stays hidden for up to this many calls that ask for it
  unsigned short_view_percent = 0;     // of views show only a beginning
  unsigned idle_progress_percent = 0;  // of progress() calls do nothing
  unsigned refuse_reserve_percent = 0;

  // Beyond it. Message numbers count from 0 what a channel's own end sends.
  std::optional<std::uint64_t> close_at;     // instead of sending this message the channel closes, at both ends
  std::optional<std::uint64_t> flip_tag_at;  // this message is sent with one bit of its tag flipped
};

// Passes everything on to `inner`, which must outlive it. Between before_sleep() and after_sleep() nothing is hidden:
// no one would ring for it later.
class FaultyTransport final : public Transport {
 public:
  FaultyTransport(Transport& inner, const Faults& faults) : inner_(inner), faults_(faults) {}

  std::string_view name() const override { return inner_.name(); }
  std::unique_ptr<Channel> channel(std::uint64_t communicator, int rank, int peer) override {
    return wrap(inner_.channel(communicator, rank, peer), communicator, rank, peer);
  }
  // The same for a channel of the inner transport that exists already.
  std::unique_ptr<Channel> wrap(std::unique_ptr<Channel> inner, std::uint64_t communicator, int rank, int peer) const;
  void before_sleep() override;
  void after_sleep() override;
  void begin_turn() override { inner_.begin_turn(); }
  void end_turn() override { inner_.end_turn(); }

 private:
  Transport& inner_;
  const Faults faults_;
  bool awake_ = true;
};

}  // namespace tutti::internal
