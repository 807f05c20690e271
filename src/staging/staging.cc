#include "staging/staging.h"

#include <algorithm>
#include <bit>

namespace tutti::internal {
namespace {

template <std::size_t... kIndex>
std::array<cuda::Event, sizeof...(kIndex)> events(int device, std::index_sequence<kIndex...>) {
  return {((void)kIndex, cuda::Event(device))...};
}
std::array<cuda::Event, Staging::kSlots> events(int device) {
  return events(device, std::make_index_sequence<Staging::kSlots>());
}

}  // namespace

Staging::Slot::Slot(std::shared_ptr<SymmetricMemory> from, int device)
    : memory(std::move(from)), pinned(device, memory->data(), memory->bytes()) {}

Staging::Streams::Streams(int on)
    : device(on),
      in(on),
      out(on),
      fetched(events(on)),
      delivered(events(on)),
      over(on),
      met(std::make_shared<Met>(on)) {}
Staging::Streams::~Streams() {
  in.finish();
  out.finish();
}

Staging::Staging(int device) : fetched(device), done(device), delivered(device) {
  const cuda::OnDevice here(device);
  Streams& first = streams_of(device);
  fetched.signal(0, first.out.get());
  done.hold(first.out.get(), 0);
  first.over.record(first.out.get());
  last_out = &first;
}
Staging::~Staging() { streams_.clear(); }

// Small ones by powers of two, so that what is kept of smaller ones is never more than what is in use.
Staging::Wanted Staging::wanted(const Plan& plan) {
  constexpr std::size_t kMin = 64 << 10, kLarge = 16 << 20, kPage = 4096;
  const std::size_t bytes = plan.slot_bytes;
  return {.slots = slots_of(plan),
          .bytes = bytes > kLarge ? (bytes + kPage - 1) / kPage * kPage : std::bit_ceil(std::max(bytes, kMin))};
}

void Staging::add_slots(const Plan& plan, int device, std::vector<std::shared_ptr<SymmetricMemory>> memory) {
  Room& all = plan.parts == 1 ? whole_ : parts_;
  const std::size_t before = all.slots.size();
  try {
    for (auto& each : memory) all.slots.emplace_back(std::move(each), device);
  } catch (...) {
    while (all.slots.size() > before) all.slots.pop_back();
    throw;
  }
  all.bytes = all.slots.back().memory->bytes();
}

Staging::Streams& Staging::streams_of(int device) { return streams_.try_emplace(device, device).first->second; }

}  // namespace tutti::internal
