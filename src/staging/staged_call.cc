#include "staging/staged_call.h"

#include <algorithm>
#include <utility>

#include "memory/copy.h"

namespace tutti::internal {
namespace {

// Copies rows to a slot from the caller's buffer, of which the part begins at `buffer`; or back.
void fetch_on_host(std::byte* slot, const std::byte* buffer, const RowCopy& copy) {
  for (std::size_t row = 0; row < copy.rows; ++row)
    copy_bytes(slot + copy.slot + row * copy.slot_stride, buffer + copy.buffer + row * copy.buffer_stride,
               copy.row_bytes);
}
void deliver_on_host(std::byte* buffer, const std::byte* slot, const RowCopy& copy) {
  for (std::size_t row = 0; row < copy.rows; ++row)
    copy_bytes(buffer + copy.buffer + row * copy.buffer_stride, slot + copy.slot + row * copy.slot_stride,
               copy.row_bytes);
}

}  // namespace

StagedCall::StagedCall(Staging& staging, const Plan& plan, const Side& input, const Side& output, cuda::Stream stream)
    : staging_(staging),
      plan_(plan),
      input_(input),
      output_(output),
      stream_(stream),
      copies_(staging, plan, input, output, stream == nullptr ? -1 : cuda::device_of(stream)) {
  if (stream_ != nullptr) {
    const int device = cuda::device_of(stream_);
    ready_.emplace(device, staging.events_of(device).record(stream_));
  }
  // What the default stream of another device was given counts too; without a stream, so does that of this device.
  for (const Side* side : {&input_, &output_})
    if (side->staged && !ready_.contains(side->device))
      ready_.emplace(side->device, staging.events_of(side->device).record(cuda::legacy_stream()));
}

void StagedCall::go_ahead() {
  copies_.take_numbers();
  is_ahead_ = true;
  enqueueing_.store(true, std::memory_order_relaxed);
}

void StagedCall::enqueue() {
  struct Enqueueing {
    std::atomic<bool>& on;
    ~Enqueueing() { on.store(false, std::memory_order_release); }
  } enqueueing{enqueueing_};
  // The events go with this thread: no other calls anything of CUDA's for this call.
  const auto ready = std::move(ready_);
  copies_.begin(ready);
  for (std::size_t part = 0; part < plan_.parts; ++part) {
    while (copies_.enqueued_fetches() < std::min(plan_.parts, part + Staging::kSlots)) copies_.enqueue_fetch();
    copies_.enqueue_delivery();
  }
  if (stream_ != nullptr) copies_.hold(stream_);
}

const std::byte* StagedCall::input(std::size_t part) const {
  if (!is_staged()) return input_.data + part * plan_.row_bytes;
  return staging_.slot(plan_, part) + plan_.part(part).input_slot;
}

std::byte* StagedCall::output(std::size_t part) const {
  if (!is_staged()) return output_.data + part * plan_.row_bytes;
  return staging_.slot(plan_, part) + plan_.part(part).output_slot;
}

bool StagedCall::fetch(std::size_t part) {
  if (!copies_.has_numbers()) {
    copies_.take_numbers();
    copies_.begin(ready_);
  }
  if (!is_ahead_)
    while (copies_.enqueued_fetches() < std::min(plan_.parts, part + Staging::kSlots)) copies_.enqueue_fetch();
  if (!copies_.is_fetched(part)) return false;
  if (copies_.fetches() || !is_staged()) return true;
  // The part that had the slot before has left it.
  if (part >= Staging::kSlots && copies_.delivers() && !copies_.is_delivered(part - Staging::kSlots)) return false;
  if (!input_.moves || input_.staged) return true;
  for (const RowCopy& copy : plan_.part(part).fetches)
    fetch_on_host(staging_.slot(plan_, part), input_.data + part * plan_.row_bytes, copy);
  return true;
}

void StagedCall::deliver(std::size_t part) {
  if (is_staged() && output_.moves && !output_.staged)
    for (const RowCopy& copy : plan_.part(part).deliveries)
      deliver_on_host(output_.data + part * plan_.row_bytes, staging_.slot(plan_, part), copy);
  copies_.signal_done(part);
  if (!is_ahead_) copies_.enqueue_delivery();
}

bool StagedCall::is_delivered() const {
  return !copies_.delivers() || (is_ahead_ ? copies_.is_delivered(plan_.parts - 1) : copies_.has_delivered());
}

Participant StagedCall::participant(const Tag& tag) const {
  Participant participant{.tag = tag};
  if (!input_.staged || !output_.staged || input_.device != output_.device) return participant;
  // No kernel there does these.
  if (plan_.call.flags == kUnequalRows || (plan_.in_place == kNotInPlace && input_.data == output_.data))
    return participant;
  participant.device = input_.device;
  participant.input = input_.data;
  participant.output = output_.data;
  for (const auto& [device, event] : ready_) participant.ready.push_back(event.get());
  participant.stream = copies_.to();
  participant.met = copies_.met();
  return participant;
}

void StagedCall::release() noexcept {
  if (copies_.has_numbers()) copies_.signal_done(plan_.parts - 1);
}

}  // namespace tutti::internal
