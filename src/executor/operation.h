// One collective on its way: a plan, its buffers, and how far it has come.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "executor/peer_link.h"
#include "executor/plan.h"
#include "executor/spaces.h"
#include "executor/workspace.h"
#include "transport/transport.h"
#include "tutti/error.h"

namespace tutti::internal {

// A resumable state machine over a plan's steps. Not thread-safe: the engine's lock is held around advance().
class Operation {
 public:
  // At first, and for another plan once advance() has returned true. The plan, links and workspace, which fits the
  // plan, must outlive it. `links` is indexed by rank of the communicator. is_sent: AtOnce::send() has sent all
  // messages of the call.
  void start(const Plan& plan, const Tag& tag, std::span<PeerLink> links, Workspace& workspace, const std::byte* input,
             std::byte* output, bool is_sent = false) {
    plan_ = &plan;
    tag_ = tag;
    links_ = links;
    workspace_ = &workspace;
    next_ = returned_ = 0;
    is_sent_ = is_sent;
    awaits_readers_ = plan.leaves_copies;
    spaces_ = Spaces(input, output, workspace.scratch.begin(plan));
  }

  // Does what it can without blocking; true once complete. Throws what channels throw. Must not be called again after
  // either.
  bool advance();

  // While advance() returns false: the rank whose message or acknowledgement is missing, and the step that misses it.
  struct Awaited {
    int rank;
    bool takes;  // what this rank sent; else it is to send
  };
  Awaited waiting_for() const;
  int step() const { return static_cast<int>(next_); }
  // Grows whenever anything moved.
  std::uint64_t moves() const { return moves_; }

 private:
  std::byte* at(const Place& place) const { return spaces_.at(place); }
  Channel& channel(int peer) { return *links_[peer].channel; }
  const SendStep& pushed_send(std::size_t number) const { return known<SendStep>(plan_->steps[first_push_ + number]); }
  // False where the step must wait.
  bool run(const PlanStep& step);
  bool run(const SendStep& step);
  bool run(const ReceiveStep& step);
  bool run(const ReduceStep& step);
  bool run(const WaitStep& step);
  void combine(const ReduceStep& step, std::size_t count);
  bool can_finish(const ReduceStep& step);
  bool is_back(const WaitStep& step);
  std::size_t look(const ReduceStep& step);
  bool begin_pushes(const ReduceStep& step);
  bool is_returned();
  void help();

  const Plan* plan_ = nullptr;
  Tag tag_{};
  std::span<PeerLink> links_;
  Workspace* workspace_ = nullptr;
  Spaces spaces_;
  bool is_sent_ = false;
  bool awaits_readers_ = false;  // of what an earlier call has left in scratch
  std::size_t next_ = 0;         // step
  std::size_t done_ = 0;         // elements of it
  struct Pass {                  // of the reduce under way, or the last one
    bool finishes = false;       // it does its finisher's work too
    bool is_far = false;         // what it makes is read there by a rank whose core is far
    bool sent_first = false;     // those of its pushes for which no room is reserved
  };
  Pass pass_;
  std::size_t first_push_ = 0;  // the step behind the last reduce
  std::size_t returned_ = 0;    // peers whose loans are known to be back, at the end
  int waiting_for_ = -1;
  std::uint64_t moves_ = 0;
};

}  // namespace tutti::internal
