// Collectives over device memory: a call's parts pass through pinned host memory, where the operation finds them as it
// finds any other buffer.
//
//   part k + 1    device -> slot        the copies of the next parts, the collective of one and the copies of those
//   part k        slot <-> peers        before it overlap: a call is to take the time of the slowest of the three, of
//   part k - 1    slot -> device        one part through the other two.
//
// The slots are symmetric memory, so peers of this host reach into them directly, and registered where there is RDMA.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <utility>

#include "cuda/memory.h"
#include "cuda/stream.h"
#include "executor/meeting.h"
#include "executor/plan.h"
#include "runtime/job.h"

namespace tutti::runtime {

// What the calls of one communicator use in turn. Whoever makes its calls grows it.
class Staging {
 public:
  static constexpr std::size_t kSlots = 3;

  Staging(Job& job, int device);
  ~Staging();  // waits for the lanes, which no call holds by then

  struct Slot {
    Slot(std::shared_ptr<SymmetricMemory> from, int device);
    std::shared_ptr<SymmetricMemory> memory;
    cuda::Pinned pinned;
  };
  struct Lane {  // of one device
    explicit Lane(int device);
    ~Lane();
    const int device;
    cuda::OwnStream in, out;                             // from the device, to it
    std::array<cuda::Event, kSlots> fetched, delivered;  // by slot
    cuda::Event over;                                    // of the last call that used `out`
  };

  // Whether every slot has room for that; and gives them room, when no call is under way. Nothing that was pinned is
  // let go of before the communicator is: that may wait for the whole device.
  bool has_room(const Plan& plan) const { return plan_bytes(plan) <= room(plan).bytes; }
  void make_room(const Plan& plan, int device, Engine::Lock& lock);
  std::byte* slot(const Plan& plan, std::size_t part) const {
    const Room& all = room(plan);
    return all.slots[all.slots.size() - slots_of(plan) + part % slots_of(plan)].memory->data();
  }
  Lane& lane(int device);

  // Parts are numbered as they come, over all calls.
  std::uint32_t number_parts(std::size_t parts) {
    return std::exchange(last_, last_ + static_cast<std::uint32_t>(parts));
  }
  cuda::Semaphore fetched;         // signalled by lanes: parts whose input has been copied, or may be touched
  cuda::Semaphore done;            // by the host: parts whose operation is done, and all after it that the host does
  cuda::Semaphore delivered;       // by lanes: parts whose output has been copied
  const Lane* last_out = nullptr;  // of the call before: its end is there

 private:
  Job& job_;
  struct Room {
    std::deque<Slot> slots;  // the last are in use
    std::size_t bytes = 0;   // of each of those
  };
  static std::size_t plan_bytes(const Plan& plan) {
    return std::max(plan.input_rows, plan.output_rows) * plan.row_bytes;
  }
  static std::size_t slots_of(const Plan& plan) { return plan.parts == 1 ? 1 : kSlots; }
  const Room& room(const Plan& plan) const { return plan.parts == 1 ? whole_ : parts_; }
  Room whole_, parts_;  // for calls of one part, and of several
  std::map<int, Lane> lanes_;
  std::uint32_t last_ = 0;
};

// One side of a call.
struct Side {
  std::byte* data = nullptr;
  bool staged = false;
  int device = -1;    // staged: whose memory it is
  bool moves = true;  // not of a broadcast: what its root puts out, and what the others take in
};

// One call of device memory: what must be done before it, how its parts pass through the slots, and what waits for it.
// With a stream, the call runs after the work that the stream already has. Without one, it runs after the work that the
// default streams of its devices already have.
//
// A call that goes ahead is enqueued on the device as a whole, by the thread that makes it. Each copy to the device
// waits for a word that the host writes; so does each copy from the device that needs a slot which is not free yet.
// From then on, the thread that drives the call only reads and writes semaphores; it never calls CUDA. So CUDA cannot
// hold that thread up, not even by what holds up the thread that is still enqueueing. Everything is enqueued in an
// order in which it could be done one after the other, for devices that have one queue for all streams.
//
// Ranks that are threads of one process do not go ahead: one rank's copies, which wait for another rank, would hold up
// what that rank does on the device before its own call. Each of their copies is enqueued when it can run.
class Passage {
 public:
  // Moves nothing; the staging has room. Throws Error{system, unsupported}.
  Passage(Staging& staging, const Plan& plan, const Side& input, const Side& output, cuda::Stream stream);

  // Before it is driven: it goes ahead.
  void go_ahead();
  // Then puts all of it on the device, while it is driven; what comes on the stream waits until it is delivered. May
  // block as long as what was put there before, or some of this, is not done. Throws Error{system}, with some of it
  // there.
  void put();

  // True once this part is where input() says. In ascending order, each after deliver() of the one before.
  bool fetch(std::size_t part);
  const std::byte* input(std::size_t part);
  std::byte* output(std::size_t part);
  // The operation of this part is done.
  void deliver(std::size_t part);
  // After the last: whether all is where the caller wants it.
  bool is_delivered() const;

  cuda::Stream stream() const { return stream_; }  // or nullptr
  std::array<const Staging::Lane*, 2> lanes() const { return {&in_, &out_}; }
  // What the ranks of this process are told of it, where they meet.
  Guest guest(const Tag& tag);

  // The call is over, well or not: the device goes on with all that it was given.
  void let_go() noexcept;
  // After that: whether nothing more is put on the device; and then, whether no copy from it is under way any more, and
  // none to it.
  bool is_put() const { return !putting_.load(std::memory_order_acquire); }
  bool has_fetched() const { return fetches_put_ == 0 || staging_.fetched.has(number(fetches_put_ - 1)); }
  bool has_delivered() const { return deliveries_put_ == 0 || staging_.delivered.has(number(deliveries_put_ - 1)); }

 private:
  bool is_staged() const { return input_.staged || output_.staged; }
  bool fetches() const { return input_.staged && input_.moves; }     // by copies from the device
  bool delivers() const { return output_.staged && output_.moves; }  // by copies to it
  std::uint32_t number(std::size_t part) const { return before_ + static_cast<std::uint32_t>(part) + 1; }
  void take_numbers();
  void begin(const std::map<int, cuda::Event>& ready);
  void put_fetch(std::size_t part);
  void put_delivery(std::size_t part);

  Staging& staging_;
  const Plan& plan_;
  const Side input_, output_;
  const cuda::Stream stream_;
  const int device_;  // of the stream, or -1
  Staging::Lane &in_, &out_;
  const cuda::Stream from_, to_;      // what copies from the device go on, and what copies to it; one, of a single part
  std::map<int, cuda::Event> ready_;  // by device: what must be done before the call touches that device's memory
  std::uint32_t before_ = 0;          // the number of the last part of the call before
  std::size_t fetches_put_ = 0, deliveries_put_ = 0;
  bool has_numbers_ = false, ahead_ = false;
  std::atomic<bool> putting_{false};  // the call goes ahead, and is not all there: the three above are that thread's
};

}  // namespace tutti::runtime
