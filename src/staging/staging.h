// What the calls of one communicator on device memory use in turn: pinned host memory, where the executor finds a
// call's parts as it finds any other buffer, and streams that copy them there and back.
//
//   part k + 1    device -> slot        The copies of the next part, the collective of one part and the copies of the
//   part k        slot <-> peers        part before run at the same time. A call takes the time of the slowest of the
//   part k - 1    slot -> device        three, and of one part through the other two.
//
// The slots are symmetric memory: peers of this host reach into them directly, and they are registered where there is
// RDMA.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "cuda/event_pool.h"
#include "cuda/memory.h"
#include "cuda/stream.h"
#include "executor/device_rendezvous.h"
#include "executor/plan.h"
#include "executor/symmetric_memory.h"

namespace tutti::internal {

// Whoever makes the communicator's calls grows it; not thread-safe but for the semaphores.
class Staging {
 public:
  static constexpr std::size_t kSlots = 3;

  // Tries at once what some devices cannot do: throws Error{system, unsupported}.
  explicit Staging(int device);
  ~Staging();  // waits for the streams, which no call holds by then

  struct Slot {
    Slot(std::shared_ptr<SymmetricMemory> from, int device);
    std::shared_ptr<SymmetricMemory> memory;
    cuda::Pinned pinned;
  };
  struct Streams {  // of one device
    explicit Streams(int device);
    ~Streams();
    const int device;
    cuda::OwnStream in, out;                             // from the device, to it
    std::array<cuda::Event, kSlots> fetched, delivered;  // by slot
    cuda::Event over;                                    // of the last call that used `out`
    const std::shared_ptr<Met> met;                      // for who meets the others on the device
  };

  // Whether every slot has room for a call of this plan. If not: memory of wanted(plan) is to be given to add_slots(),
  // when no call is under way. That pins it, which may wait for the device. Nothing that was pinned is let go of before
  // the communicator is: that may wait for the whole device.
  bool has_room(const Plan& plan) const { return plan.slot_bytes <= room(plan).bytes; }
  struct Wanted {
    std::size_t slots, bytes;  // of each
  };
  static Wanted wanted(const Plan& plan);
  void add_slots(const Plan& plan, int device, std::vector<std::shared_ptr<SymmetricMemory>> memory);

  // Where part `part` of the call lies.
  std::byte* slot(const Plan& plan, std::size_t part) const {
    const Room& all = room(plan);
    return all.slots[all.slots.size() - slots_of(plan) + part % slots_of(plan)].memory->data();
  }
  Streams& streams_of(int device);
  // For what must be done before a call; likewise of any device.
  cuda::EventPool& events_of(int device) { return events_.try_emplace(device, device).first->second; }

  // Parts are numbered as they come, over all calls: reserves the next numbers, and returns the last one before them.
  std::uint32_t number_parts(std::size_t parts) {
    return std::exchange(last_, last_ + static_cast<std::uint32_t>(parts));
  }
  cuda::Semaphore fetched;            // signalled by streams: parts whose input has been copied, or may be touched
  cuda::Semaphore done;               // by the host: parts whose operation is done, and all after it that the host does
  cuda::Semaphore delivered;          // by streams: parts whose output has been copied
  const Streams* last_out = nullptr;  // of the call before: its end is there

 private:
  struct Room {
    std::deque<Slot> slots;  // the last are in use
    std::size_t bytes = 0;   // of each of those
  };
  static std::size_t slots_of(const Plan& plan) { return plan.parts == 1 ? 1 : kSlots; }
  const Room& room(const Plan& plan) const { return plan.parts == 1 ? whole_ : parts_; }
  Room whole_, parts_;  // for calls of one part, and of several
  std::map<int, Streams> streams_;
  std::map<int, cuda::EventPool> events_;
  std::uint32_t last_ = 0;
};

}  // namespace tutti::internal
