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

Staging::Slot::Slot(std::shared_ptr<SymmetricMemory> from, int device)
    : memory(std::move(from)), pinned(device, memory->data(), memory->bytes()) {}

Staging::Lane::Lane(int on) : device(on), in(on), out(on), fetched(events(on)), delivered(events(on)), over(on) {}
Staging::Lane::~Lane() {
  in.finish();
  out.finish();
}

// Tries at once what some devices cannot do.
Staging::Staging(Job& job, int device) : fetched(device), done(device), delivered(device), job_(job) {
  const cuda::OnDevice here(device);
  Lane& first = lane(device);
  fetched.signal(0, first.out.get());
  done.hold(first.out.get(), 0);
  first.over.record(first.out.get());
  last_out = &first;
}
Staging::~Staging() { lanes_.clear(); }

// Small ones by powers of two, so that what is kept of smaller ones is never more than what is in use.
void Staging::make_room(const Plan& plan, int device, Engine::Lock& lock) {
  constexpr std::size_t kLeast = 64 << 10, kLarge = 16 << 20, kPage = 4096;
  const std::size_t wanted = plan_bytes(plan);
  const std::size_t bytes =
      wanted > kLarge ? (wanted + kPage - 1) / kPage * kPage : std::bit_ceil(std::max(wanted, kLeast));
  std::vector<std::shared_ptr<SymmetricMemory>> memory;
  while (memory.size() < slots_of(plan)) memory.push_back(job_.transports().allocate(bytes));
  Room& all = plan.parts == 1 ? whole_ : parts_;
  const std::size_t before = all.slots.size();
  const Engine::Lock::Break unlocked(lock);  // pinning may wait for the device
  try {
    for (auto& each : memory) all.slots.emplace_back(std::move(each), device);
  } catch (...) {
    while (all.slots.size() > before) all.slots.pop_back();
    throw;
  }
  all.bytes = bytes;
}

Staging::Lane& Staging::lane(int device) { return lanes_.try_emplace(device, device).first->second; }

Passage::Passage(Staging& staging, const Plan& plan, const Side& input, const Side& output, cuda::Stream stream)
    : staging_(staging),
      plan_(plan),
      input_(input),
      output_(output),
      stream_(stream),
      device_(stream == nullptr ? -1 : cuda::device_of(stream)),
      in_(staging.lane(input.staged    ? input.device
                       : output.staged ? output.device
                                       : device_)),
      out_(staging.lane(output.staged ? output.device : in_.device)),
      from_(plan.parts == 1 && &in_ == &out_ ? out_.out.get() : in_.in.get()),
      to_(out_.out.get()) {
  if (stream_ != nullptr) ready_.try_emplace(device_, device_).first->second.record(stream_);
  // Of another device, too, and without a stream, what its default stream was given counts.
  for (const Side* side : {&input_, &output_})
    if (side->staged && !ready_.contains(side->device))
      ready_.try_emplace(side->device, side->device).first->second.record(cuda::legacy_stream());
}

void Passage::go_ahead() {
  take_numbers();
  ahead_ = true;
  putting_.store(true, std::memory_order_relaxed);
}

void Passage::take_numbers() {
  before_ = staging_.number_parts(plan_.parts);
  has_numbers_ = true;
}

void Passage::put() {
  struct Putting {
    std::atomic<bool>& on;
    ~Putting() { on.store(false, std::memory_order_release); }
  } putting{putting_};
  // They go with this thread: no other calls anything of CUDA's for this call.
  const auto ready = std::move(ready_);
  begin(ready);
  for (std::size_t part = 0; part < plan_.parts; ++part) {
    while (fetches_put_ < std::min(plan_.parts, part + Staging::kSlots)) put_fetch(fetches_put_);
    put_delivery(part);
  }
  if (stream_ != nullptr) out_.over.hold(stream_);
}

// What the lanes wait for before the first part.
void Passage::begin(const std::map<int, cuda::Event>& ready) {
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
  for (const auto& [device, event] : ready) hold(event, nullptr);
  // The slots, and the words, of the call before.
  if (const Staging::Lane* const last = std::exchange(staging_.last_out, &out_)) hold(last->over, last->out.get());
}

void Passage::put_fetch(std::size_t part) {
  const cuda::OnDevice here(in_.device);
  if (fetches()) {
    const Plan& plan = plan_.part(part);
    const std::size_t slot = part % Staging::kSlots;
    if (part >= Staging::kSlots && delivers()) out_.delivered[slot].hold(from_);
    if (part >= Staging::kSlots && !delivers()) staging_.done.hold(from_, number(part - Staging::kSlots));
    cuda::copy_rows(staging_.slot(plan_, part) + plan.input_bias, plan.row_bytes, input_.data + part * plan_.row_bytes,
                    plan.whole_row_bytes, plan.row_bytes, plan.input_rows, cuda::Direction::from_device, from_);
    ++fetches_put_;  // whatever follows: it is under way
    if (from_ != to_) in_.fetched[slot].record(from_);
  } else {
    ++fetches_put_;
  }
  staging_.fetched.signal(number(part), from_);
}

void Passage::put_delivery(std::size_t part) {
  const cuda::OnDevice here(out_.device);
  const std::size_t slot = part % Staging::kSlots;
  if (fetches() && from_ != to_) in_.fetched[slot].hold(to_);  // the next line says so too, until all is let go of
  staging_.done.hold(to_, number(part));
  if (delivers()) {
    const Plan& plan = plan_.part(part);
    cuda::copy_rows(output_.data + part * plan_.row_bytes, plan.whole_row_bytes,
                    staging_.slot(plan_, part) + plan.output_bias, plan.row_bytes, plan.row_bytes, plan.output_rows,
                    cuda::Direction::to_device, to_);
    ++deliveries_put_;
    if (plan_.parts > Staging::kSlots) out_.delivered[slot].record(to_);
  } else {
    ++deliveries_put_;
  }
  staging_.delivered.signal(number(part), to_);
  if (part + 1 == plan_.parts) out_.over.record(to_);
}

const std::byte* Passage::input(std::size_t part) {
  if (!is_staged()) return input_.data + part * plan_.row_bytes;
  return staging_.slot(plan_, part) + plan_.part(part).input_bias;
}
std::byte* Passage::output(std::size_t part) {
  if (!is_staged()) return output_.data + part * plan_.row_bytes;
  return staging_.slot(plan_, part) + plan_.part(part).output_bias;
}

bool Passage::fetch(std::size_t part) {
  if (!has_numbers_) {
    take_numbers();
    begin(ready_);
  }
  while (!ahead_ && fetches_put_ < std::min(plan_.parts, part + Staging::kSlots)) put_fetch(fetches_put_);
  if (!staging_.fetched.has(number(part))) return false;
  if (fetches() || !is_staged()) return true;
  // The part that had the slot before has left it.
  if (part >= Staging::kSlots && delivers() && !staging_.delivered.has(number(part - Staging::kSlots))) return false;
  if (!input_.moves || input_.staged) return true;
  const Plan& plan = plan_.part(part);
  copy_rows_on_host(staging_.slot(plan_, part) + plan.input_bias, plan.row_bytes, input_.data + part * plan_.row_bytes,
                    plan.whole_row_bytes, plan.row_bytes, plan.input_rows);
  return true;
}

void Passage::deliver(std::size_t part) {
  if (is_staged() && output_.moves && !output_.staged) {
    const Plan& plan = plan_.part(part);
    copy_rows_on_host(output_.data + part * plan_.row_bytes, plan.whole_row_bytes,
                      staging_.slot(plan_, part) + plan.output_bias, plan.row_bytes, plan.row_bytes, plan.output_rows);
  }
  staging_.done.signal(number(part));
  if (!ahead_) put_delivery(part);
}

bool Passage::is_delivered() const {
  return !delivers() || (ahead_ ? staging_.delivered.has(number(plan_.parts - 1)) : has_delivered());
}

Guest Passage::guest(const Tag& tag) {
  Guest guest{.tag = tag};
  if (!input_.staged || !output_.staged || input_.device != output_.device) return guest;
  guest.device = input_.device;
  guest.input = input_.data;
  guest.output = output_.data;
  for (const auto& [device, event] : ready_) guest.ready.push_back(&event);
  guest.stream = to_;
  return guest;
}

void Passage::let_go() noexcept {
  if (has_numbers_) staging_.done.signal(number(plan_.parts - 1));
}

}  // namespace tutti::runtime
