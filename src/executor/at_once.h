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
  Arrival look(const Tag& tag) { return next_ == in_.end() ? Arrival::whole : look_further(tag); }
  // Once all is here: the rest of the call, with the buffers of send().
  void finish();

 private:
  struct Outgoing {
    PeerLink* link;
    Place from;
    std::size_t bytes;
    Copier copier;
  };
  struct Incoming {
    PeerLink* link;
    std::int32_t peer;
    std::size_t bytes;
  };
  // A reduction with what finishes it, or a message that is received.
  struct Part {
    const ReduceStep* reduction = nullptr;  // of a message none
    bool is_local_copy = false;             // of a place's bytes, as they are
    std::size_t messages = 0;               // the next of in_: its sources, or what is received
    Place from = {}, to = {};               // `from` only of a local copy
    bool is_partial = false;                // of a reduction: what is at `to` then
    std::size_t number = 0;                 // of Plan::reductions
  };
  static bool suits(const Plan& plan, std::span<const PeerLink> links);
  Part part_of(const ReduceStep& step) const;
  Arrival look_further(const Tag& tag);
  void combine(const Part& part);
  void reduce(const Part& part);

  const Plan* plan_ = nullptr;
  Workspace* workspace_ = nullptr;
  std::vector<Part> copies_;  // that are made before anything is sent
  std::vector<Outgoing> out_;
  std::vector<Incoming> in_;
  std::vector<Part> rest_;                // what finish() does
  std::vector<Incoming>::iterator next_;  // the first of in_ that is not here
  std::vector<const std::byte*> shown_;   // by rank: the message that is here
  Spaces spaces_;
};

}  // namespace tutti::internal
