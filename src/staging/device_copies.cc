#include "staging/device_copies.h"

#include <utility>

#include "cuda/memory.h"

namespace tutti::internal {

DeviceCopies::DeviceCopies(Staging& staging, const Plan& plan, const Side& input, const Side& output, int device)
    : staging_(staging),
      plan_(plan),
      input_(input),
      output_(output),
      in_(staging.streams_of(input.staged    ? input.device
                             : output.staged ? output.device
                                             : device)),
      out_(staging.streams_of(output.staged ? output.device : in_.device)),
      from_(plan.parts == 1 && &in_ == &out_ ? out_.out.get() : in_.in.get()),
      to_(out_.out.get()) {}

void DeviceCopies::take_numbers() {
  before_ = staging_.number_parts(plan_.parts);
  has_numbers_ = true;
}

void DeviceCopies::begin(const Ready& ready) {
  const auto hold = [&](const cuda::Event& event, cuda::Stream already) {
    if (from_ != already) {
      const cuda::OnDevice here(in_.device);
      event.hold(from_);
    }
    if (to_ != from_ && to_ != already) {
      const cuda::OnDevice here(out_.device);
      event.hold(to_);
    }
  };
  for (const auto& [device, event] : ready) hold(*event, nullptr);
  // The slots, and the semaphores, of the call before.
  if (const Staging::Streams* const last = std::exchange(staging_.last_out, &out_)) hold(last->over, last->out.get());
}

void DeviceCopies::enqueue_fetch() {
  const std::size_t part = fetches_;
  const cuda::OnDevice here(in_.device);
  if (fetches()) {
    const std::size_t slot = part % Staging::kSlots;
    if (part >= Staging::kSlots && delivers()) out_.delivered[slot].hold(from_);
    if (part >= Staging::kSlots && !delivers()) staging_.done.hold(from_, number(part - Staging::kSlots));
    for (const RowCopy& copy : plan_.part(part).fetches)
      cuda::copy_rows(staging_.slot(plan_, part) + copy.slot, copy.slot_stride,
                      input_.data + part * plan_.row_bytes + copy.buffer, copy.buffer_stride, copy.row_bytes, copy.rows,
                      cuda::Direction::from_device, from_);
    ++fetches_;  // even if what follows throws: the copy is under way
    if (from_ != to_) in_.fetched[slot].record(from_);
  } else {
    ++fetches_;
  }
  staging_.fetched.signal(number(part), from_);
}

void DeviceCopies::enqueue_delivery() {
  const std::size_t part = deliveries_;
  const cuda::OnDevice here(out_.device);
  const std::size_t slot = part % Staging::kSlots;
  // The next line says so too, until the call is released.
  if (fetches() && from_ != to_) in_.fetched[slot].hold(to_);
  staging_.done.hold(to_, number(part));
  if (delivers()) {
    for (const RowCopy& copy : plan_.part(part).deliveries)
      cuda::copy_rows(output_.data + part * plan_.row_bytes + copy.buffer, copy.buffer_stride,
                      staging_.slot(plan_, part) + copy.slot, copy.slot_stride, copy.row_bytes, copy.rows,
                      cuda::Direction::to_device, to_);
    ++deliveries_;
    if (plan_.parts > Staging::kSlots) out_.delivered[slot].record(to_);
  } else {
    ++deliveries_;
  }
  staging_.delivered.signal(number(part), to_);
  if (part + 1 == plan_.parts) out_.over.record(to_);
}

}  // namespace tutti::internal
