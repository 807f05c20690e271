// A call whose messages are short and go in one round, done without an Operation: each peer is sent its message, and
// once what the peers sent is here, the rest is done in one go.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "executor/operation.h"
#include "executor/plan.h"

namespace tutti::internal {

class AtOnce {
 public:
  AtOnce() = default;  // does nothing: false
  // Of this plan, if it suits; else false. `plan`, `links` and their channels, and `workspace`, which fits the plan,
  // outlive it. `links` is indexed by rank of the communicator.
  AtOnce(const Plan& plan, std::span<PeerLink> links, Workspace& workspace);
  explicit operator bool() const { return plan_ != nullptr; }

  // Sends all messages of the call `tag`, or none: false, and nothing has happened. An Operation can go on from here
  // (Operation::start).
  bool send(const Tag& tag, const std::byte* input, std::byte* output);
  // Behind send(): whether what the peers sent for the call is here, all of it. never: something else is here, or a
  // message that cannot be taken at once (it is lent, say); an Operation has to go on.
  enum class Arrival : std::uint8_t { whole, awaited, never };
  Arrival look(const Tag& tag);
  // Once all is here: the rest of the call, with the buffers of send().
  void finish();

 private:
  struct Incoming {
    std::int32_t peer;
    std::size_t bytes;
  };
  static bool suits(const Plan& plan, std::span<const PeerLink> links);
  Channel& channel(std::int32_t peer) { return *links_[static_cast<std::size_t>(peer)].channel; }
  void take(std::int32_t peer, std::byte* to);
  void combine(const ReduceStep& step);

  const Plan* plan_ = nullptr;
  std::span<PeerLink> links_;
  Workspace* workspace_ = nullptr;
  std::vector<const ReduceStep*> copies_;  // that are made before anything is sent
  std::vector<const SendStep*> out_;
  std::vector<Incoming> in_;
  std::vector<const PlanStep*> rest_;    // what finish() does
  std::size_t here_ = 0;                 // of in_, those that are here
  std::vector<const std::byte*> shown_;  // by rank: the message that is here
  Spaces spaces_;
};

}  // namespace tutti::internal
