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
#include <cstdint>
#include <deque>
#include <map>
#include <memory>

#include "cuda/memory.h"
#include "cuda/stream.h"
#include "runtime/job.h"
#include "runtime/meeting.h"
#include "runtime/plan.h"

namespace tutti::runtime {

// What the calls of one communicator use in turn. Under the engine's lock.
class Staging {
 public:
  static constexpr std::size_t kSlots = 3;

  explicit Staging(Job& job) : job_(job) {}

  struct Slot {
    Slot(Job& job, int device, std::size_t bytes)
        : memory(job.allocate(bytes)), pinned(device, memory->data(), bytes) {}
    std::shared_ptr<SymmetricMemory> memory;
    cuda::Pinned pinned;
  };
  struct Lane {  // of one device
    explicit Lane(int device);
    cuda::OwnStream in, out;                             // from the device, to it
    std::array<cuda::Event, kSlots> fetched, delivered;  // by slot
  };

  // Whether every slot has room for that; and gives them room, when no call is under way. Nothing that was pinned is
  // let go of before the communicator is: that may wait for the whole device, and so for a stream that is held.
  bool has_room(const Plan& plan) const { return plan_bytes(plan) <= room(plan).bytes; }
  void make_room(const Plan& plan, int device);
  std::byte* slot(const Plan& plan, std::size_t part) const {
    const Room& all = room(plan);
    return all.slots[all.slots.size() - slots_of(plan) + part % slots_of(plan)].memory->data();
  }
  Lane& lane(int device);
  cuda::Gate& gate(int device);
  std::uint32_t next_number() { return ++number_; }

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
  std::map<int, cuda::Gate> gates_;
  std::uint32_t number_ = 0;  // of the calls that held a gate
};

// One side of a call.
struct Side {
  std::byte* data = nullptr;
  bool staged = false;
  int device = -1;    // staged: whose memory it is
  bool moves = true;  // not of a broadcast: what its root puts out, and what the others take in
};

// One call's way: what must have happened before it, its parts through the slots, and what waits for it. Ordered on a
// stream if one is given; else after whatever its devices' default streams were given before.
class Passage {
 public:
  // Neither blocks nor moves anything; the staging has room. Throws Error{system, unsupported}.
  Passage(Staging& staging, const Plan& plan, const Side& input, const Side& output, cuda::Stream stream);

  // From here on what comes on the stream waits until let_go(). Once the call is sure to be made.
  void hold_stream();
  cuda::Stream stream() const { return stream_; }  // or nullptr

  // Starts what can be started of the copies from the device; true once this part is where input() says. In ascending
  // order, each after deliver() of the one before.
  bool fetch(std::size_t part);
  const std::byte* input(std::size_t part);
  std::byte* output(std::size_t part);
  // The operation of this part is done: starts the copies to the device.
  void deliver(std::size_t part);
  // After the last: whether all is where the caller wants it.
  bool is_delivered();

  // What the ranks of this process are told of it, where they meet.
  Guest guest(const Tag& tag);

  // The call has failed: true once nothing is under way in anybody's memory.
  bool is_quiet();
  // The call is over, well or not: lets the stream go on.
  void let_go() noexcept;

 private:
  bool is_staged() const { return input_.staged || output_.staged; }
  bool is_ready();
  bool is_free(std::size_t part);
  void enqueue(std::size_t part);

  Staging& staging_;
  const Plan& plan_;
  const Side input_, output_;
  const cuda::Stream stream_;
  std::map<int, cuda::Event> ready_;  // by device: what must be done before the call touches that device's memory
  bool is_ready_ = false;             // seen from the host
  std::size_t next_ = 0;              // part to be fetched
  int gate_device_ = -1;
  std::uint32_t number_ = 0;  // of the gate; 0: it holds nothing
};

}  // namespace tutti::runtime
