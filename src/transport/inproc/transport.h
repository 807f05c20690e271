// n ranks in one process: the transport to read first. It has no buffers at all, so it shows what a channel promises
// and nothing else: a message is a pointer that waits until the other side wants it.
#pragma once

#include <memory>
#include <string_view>

#include "transport/inproc/hub.h"
#include "transport/sleeper.h"
#include "transport/transport.h"

namespace tutti::internal::inproc {

// One rank's end. Ranks are usually threads.
class Transport final : public internal::Transport {
 public:
  Transport(std::shared_ptr<Hub> hub, Sleeper& sleeper);

  std::string_view name() const override { return "inproc"; }
  std::unique_ptr<internal::Channel> channel(std::uint64_t communicator, int rank, int peer) override;
  void before_sleep() override;
  void after_sleep() override;
  bool has_turns() const override { return true; }
  void begin_turn() override { self_.turn.begin(); }
  void end_turn() override { self_.turn.end(); }

 private:
  std::shared_ptr<Hub> hub_;
  Resident self_;  // asleep: guarded by the hub's mutex
};

}  // namespace tutti::internal::inproc
