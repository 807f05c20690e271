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
  AtOnce(AtOnce&&) = default;
  AtOnce& operator=(AtOnce&&) = default;
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
    bool fetches_to_write;  // as of ReceiveHints
  };
  // A message to receive, or a reduction together with what finishes it. (Nothing is lent, so both are one pass.)
  struct Task {
    const Reduction* reduction = nullptr;  // null: a message is received
    std::span<const PlanSource> sources;   // of the reduction
    std::size_t count = 0;                 // elements that it makes
    bool is_partial = false;               // whether they are of the accumulation type
    bool is_local_copy = false;            // it copies `from`, which is local, and changes nothing
    std::size_t messages = 0;              // how many of in_ it uses
    Place from, to;
  };
  static bool suits(const Plan& plan, std::span<const PeerLink> links);
  Task task_of(const ReduceStep& step) const;
  Arrival look_further(const Tag& tag);
  void combine(const Task& task);
  void reduce(const Task& task);

  const Plan* plan_ = nullptr;
  Workspace* workspace_ = nullptr;
  std::vector<Task> copies_;  // that are made before anything is sent; they use no message
  std::vector<Outgoing> out_;
  std::vector<Incoming> in_;                // in the order in which rest_ uses them
  std::vector<Task> rest_;                  // what finish() does
  std::vector<Incoming>::iterator next_{};  // the first of in_ that is not here
  struct Shown {
    const std::byte* data = nullptr;
    bool fetches_to_write = false;
  };
  std::vector<Shown> shown_;  // by rank: the message that is here
  Spaces spaces_;
};

}  // namespace tutti::internal
