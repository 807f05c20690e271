// A collective over device memory: its parts pass through the slots of pinned host memory (staging.h).
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <map>

#include "cuda/stream.h"
#include "executor/device_rendezvous.h"
#include "staging/device_copies.h"

namespace tutti::internal {

// What must be done before the call, when its copies are enqueued, and what waits for it. With a stream, the call runs
// after the work that the stream already has. Without one, it runs after the work that the default streams of its
// devices already have.
//
// A call that goes ahead is enqueued on the device as a whole, by the thread that makes it. Each copy to the device
// waits for a semaphore that the host signals; so does each copy from the device that needs a slot which is not free
// yet. From then on, the thread that drives the call only reads and writes semaphores; it never calls CUDA. So CUDA
// cannot hold that thread up, not even by what holds up the thread that is still enqueueing.
//
// Ranks that are threads of one process do not go ahead: one rank's copies, which wait for another rank, would hold up
// what that rank does on the device before its own call. Each of their copies is enqueued when it can run.
class StagedCall {
 public:
  // Moves nothing; the staging has room. Throws Error{system, unsupported}.
  StagedCall(Staging& staging, const Plan& plan, const Side& input, const Side& output, cuda::Stream stream);

  // Before it is driven: it goes ahead.
  void go_ahead();
  // Then enqueues all of it, while it is driven; what comes on the stream waits until it is delivered. May block as
  // long as what was enqueued before, or some of this, is not done. Throws Error{system}, with some of it enqueued.
  void enqueue();

  // Whether input() and output() are in a slot, not the caller's own.
  bool is_staged() const { return input_.staged || output_.staged; }
  // True once this part is where input() says. In ascending order, each after deliver() of the one before.
  bool fetch(std::size_t part);
  const std::byte* input(std::size_t part) const;
  std::byte* output(std::size_t part) const;
  // The operation of this part is done.
  void deliver(std::size_t part);
  // After the last: whether all is where the caller wants it.
  bool is_delivered() const;

  cuda::Stream stream() const { return stream_; }  // or nullptr
  std::array<const Staging::Streams*, 2> streams() const { return copies_.streams(); }
  // What the ranks of this process are told of it, where they meet.
  Participant participant(const Tag& tag) const;

  // The call is over, well or not: the device goes on with all that it was given.
  void release() noexcept;
  // After that: whether nothing more is enqueued; and then, whether no copy from the device is under way any more, and
  // none to it.
  bool is_enqueued() const { return !enqueueing_.load(std::memory_order_acquire); }
  bool has_fetched() const { return copies_.has_fetched(); }
  bool has_delivered() const { return copies_.has_delivered(); }

 private:
  const Staging& staging_;
  const Plan& plan_;
  const Side input_, output_;
  const cuda::Stream stream_;
  Ready ready_;          // what must be done before the call touches a device's memory
  DeviceCopies copies_;  // of the thread that enqueues, as long as it does
  bool is_ahead_ = false;
  std::atomic<bool> enqueueing_{false};
};

}  // namespace tutti::internal
