// The copies of one call between its buffers on devices and the slots, as work on streams of its devices.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>

#include "cuda/stream.h"
#include "executor/plan.h"
#include "staging/staging.h"

namespace tutti::internal {

using Ready = std::map<int, cuda::EventPool::Taken>;  // by device

// One side of a call, its input or its output.
struct Side {
  std::byte* data = nullptr;
  bool staged = false;
  int device = -1;    // staged: whose memory it is
  bool moves = true;  // not of a broadcast: what its root puts out, and what the others take in
};

// A part is *fetched* once its input is in its slot, or may be put there; it is *delivered* once its output is where
// the caller wants it. Each part is enqueued for both, also where there is nothing to copy: the streams then signal
// that the slot may be used. Everything is enqueued in an order in which it could be done one after the other, for
// devices that have one queue for all streams.
class DeviceCopies {
 public:
  // Enqueues nothing. `device`: of the streams where neither side has one.
  DeviceCopies(Staging& staging, const Plan& plan, const Side& input, const Side& output, int device);

  bool fetches() const { return input_.staged && input_.moves; }     // by copies from the device
  bool delivers() const { return output_.staged && output_.moves; }  // by copies to it

  // First: takes the call's place behind the calls before it.
  void take_numbers();
  bool has_numbers() const { return has_numbers_; }
  // Then, before the first part: the streams wait for `ready`, by device, and for the call before. Throws
  // Error{system}, as do the next two, which are called for each part in ascending order.
  void begin(const Ready& ready);
  void enqueue_fetch();     // of the next part
  void enqueue_delivery();  // likewise
  std::size_t enqueued_fetches() const { return fetches_; }
  // What comes on `stream` waits until the last part is delivered, which is enqueued.
  void hold(cuda::Stream stream) const { out_.over.hold(stream); }

  // What the host does between the two.
  bool is_fetched(std::size_t part) const { return staging_.fetched.has(number(part)); }
  void signal_done(std::size_t part) { staging_.done.signal(number(part)); }
  bool is_delivered(std::size_t part) const { return staging_.delivered.has(number(part)); }
  // Whether no copy that is enqueued is under way any more: from the device, and to it.
  bool has_fetched() const { return fetches_ == 0 || is_fetched(fetches_ - 1); }
  bool has_delivered() const { return deliveries_ == 0 || is_delivered(deliveries_ - 1); }

  std::array<const Staging::Streams*, 2> streams() const { return {&in_, &out_}; }
  cuda::Stream to() const { return to_; }
  const std::shared_ptr<Met>& met() const { return out_.met; }

 private:
  std::uint32_t number(std::size_t part) const { return before_ + static_cast<std::uint32_t>(part) + 1; }

  Staging& staging_;
  const Plan& plan_;
  const Side input_, output_;
  Staging::Streams &in_, &out_;
  const cuda::Stream from_, to_;  // what copies from the device go on, and what copies to it; one, of a single part
  std::uint32_t before_ = 0;      // the number of the last part of the call before
  bool has_numbers_ = false;
  std::size_t fetches_ = 0, deliveries_ = 0;  // enqueued
};

}  // namespace tutti::internal
