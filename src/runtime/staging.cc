#include "runtime/staging.h"

#include <algorithm>
#include <bit>

#include "memory/copy.h"

namespace tutti::runtime {
namespace {

template <std::size_t... kIndex>
std::array<cuda::Event, sizeof...(kIndex)> events(int device, std::index_sequence<kIndex...>) {
  return {((void)kIndex, cuda::Event(device))...};
}
std::array<cuda::Event, Staging::kSlots> events(int device) {
  return events(device, std::make_index_sequence<Staging::kSlots>());
}

void copy_rows_on_host(std::byte* to, std::size_t to_stride, const std::byte* from, std::size_t from_stride,
                       std::size_t row_bytes, std::size_t rows) {
  for (std::size_t row = 0; row < rows; ++row) copy_bytes(to + row * to_stride, from + row * from_stride, row_bytes);
}

}  // namespace

Staging::Lane::Lane(int device) : in(device), out(device), fetched(events(device)), delivered(events(device)) {}

// Small ones by powers of two, so that what is kept of smaller ones is never more than what is in use.
void Staging::make_room(const Plan& plan, int device) {
  constexpr std::size_t kLeast = 64 << 10, kLarge = 16 << 20, kPage = 4096;
  const std::size_t wanted = plan_bytes(plan);
  const std::size_t bytes =
      wanted > kLarge ? (wanted + kPage - 1) / kPage * kPage : std::bit_ceil(std::max(wanted, kLeast));
  Room& all = plan.parts == 1 ? whole_ : parts_;
  const std::size_t before = all.slots.size();
  try {
    for (std::size_t i = 0; i < slots_of(plan); ++i) all.slots.emplace_back(job_, device, bytes);
  } catch (...) {
    while (all.slots.size() > before) all.slots.pop_back();
    throw;
  }
  all.bytes = bytes;
}

Staging::Lane& Staging::lane(int device) { return lanes_.try_emplace(device, device).first->second; }
cuda::Gate& Staging::gate(int device) { return gates_.try_emplace(device, device).first->second; }

Passage::Passage(Staging& staging, const Plan& plan, const Side& input, const Side& output, cuda::Stream stream)
    : staging_(staging), plan_(plan), input_(input), output_(output), stream_(stream) {
  for (const Side* side : {&input_, &output_}) {
    if (!side->staged) continue;
    staging_.lane(side->device);
    ready_.try_emplace(side->device, side->device);
  }
  if (stream_ != nullptr) {
    gate_device_ = cuda::device_of(stream_);
    staging_.gate(gate_device_);
    ready_.try_emplace(gate_device_, gate_device_).first->second.record(stream_);
  }
  // Of a second device, too, and without a stream, what its default stream was given counts.
  for (auto& [device, event] : ready_)
    if (device != gate_device_) event.record(cuda::legacy_stream());
}

void Passage::hold_stream() {
  if (stream_ == nullptr) return;
  number_ = staging_.next_number();
  staging_.gate(gate_device_).hold(stream_, number_);
}

bool Passage::is_ready() {
  if (!is_ready_) is_ready_ = std::ranges::all_of(ready_, [](const auto& each) { return each.second.is_done(); });
  return is_ready_;
}

const std::byte* Passage::input(std::size_t part) {
  if (!is_staged()) return input_.data + part * plan_.row_bytes;
  return staging_.slot(plan_, part) + plan_.part(part).input_bias;
}
std::byte* Passage::output(std::size_t part) {
  if (!is_staged()) return output_.data + part * plan_.row_bytes;
  return staging_.slot(plan_, part) + plan_.part(part).output_bias;
}

// The part that had its slot before has left it.
bool Passage::is_free(std::size_t part) {
  if (part < Staging::kSlots || !output_.staged || !output_.moves) return true;
  return staging_.lane(output_.device).delivered[part % Staging::kSlots].is_done();
}

// The copies from the device.
void Passage::enqueue(std::size_t part) {
  const cuda::OnDevice here(input_.device);
  const Plan& plan = plan_.part(part);
  const std::size_t number = part % Staging::kSlots;
  Staging::Lane& lane = staging_.lane(input_.device);
  if (part == 0)
    for (const auto& [device, event] : ready_) event.hold(lane.in.get());
  if (part >= Staging::kSlots && output_.staged && output_.moves)
    staging_.lane(output_.device).delivered[number].hold(lane.in.get());
  cuda::copy_rows(staging_.slot(plan_, part) + plan.input_bias, plan.row_bytes, input_.data + part * plan_.row_bytes,
                  plan.whole_row_bytes, plan.row_bytes, plan.input_rows, lane.in.get());
  lane.fetched[number].record(lane.in.get());
}

bool Passage::fetch(std::size_t part) {
  if (!is_staged()) return is_ready();
  if (!input_.moves) return is_free(part);
  if (input_.staged) {
    for (; next_ < std::min(plan_.parts, part + Staging::kSlots); ++next_) enqueue(next_);
    return staging_.lane(input_.device).fetched[part % Staging::kSlots].is_done();
  }
  if (!is_ready() || !is_free(part)) return false;
  const Plan& plan = plan_.part(part);
  copy_rows_on_host(staging_.slot(plan_, part) + plan.input_bias, plan.row_bytes, input_.data + part * plan_.row_bytes,
                    plan.whole_row_bytes, plan.row_bytes, plan.input_rows);
  return true;
}

void Passage::deliver(std::size_t part) {
  if (!is_staged() || !output_.moves) return;
  const Plan& plan = plan_.part(part);
  std::byte* const to = output_.data + part * plan_.row_bytes;
  const std::byte* const from = staging_.slot(plan_, part) + plan.output_bias;
  if (!output_.staged)
    return copy_rows_on_host(to, plan.whole_row_bytes, from, plan.row_bytes, plan.row_bytes, plan.output_rows);
  const cuda::OnDevice here(output_.device);
  Staging::Lane& lane = staging_.lane(output_.device);
  if (part == 0)
    for (const auto& [device, event] : ready_) event.hold(lane.out.get());
  cuda::copy_rows(to, plan.whole_row_bytes, from, plan.row_bytes, plan.row_bytes, plan.output_rows, lane.out.get());
  // The stream goes on without waiting for this thread to look.
  if (part + 1 == plan_.parts && number_ != 0 && gate_device_ == output_.device)
    staging_.gate(gate_device_).open(number_, lane.out.get());
  lane.delivered[part % Staging::kSlots].record(lane.out.get());
}

bool Passage::is_delivered() {
  if (!is_staged() || !output_.moves || !output_.staged) return true;
  return staging_.lane(output_.device).delivered[(plan_.parts - 1) % Staging::kSlots].is_done();
}

Guest Passage::guest(const Tag& tag) {
  Guest guest{.tag = tag};
  if (!input_.staged || !output_.staged || input_.device != output_.device) return guest;
  guest.device = input_.device;
  guest.input = input_.data;
  guest.output = output_.data;
  for (const auto& [device, event] : ready_) guest.ready.push_back(&event);
  guest.stream = staging_.lane(guest.device).out.get();
  return guest;
}

bool Passage::is_quiet() {
  const auto is_done = [](const cuda::Event& event) { return event.is_done(); };
  for (const Side* side : {&input_, &output_}) {
    if (!side->staged) continue;
    const Staging::Lane& lane = staging_.lane(side->device);
    if (!std::ranges::all_of(lane.fetched, is_done) || !std::ranges::all_of(lane.delivered, is_done)) return false;
  }
  return true;
}

void Passage::let_go() noexcept {
  if (number_ != 0) staging_.gate(gate_device_).open(number_);
}

}  // namespace tutti::runtime
