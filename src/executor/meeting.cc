#include "executor/meeting.h"

#include <algorithm>
#include <optional>

#include "cuda/reduce.h"
#include "schedule/builder.h"
#include "transport/transport.h"
#include "tutti/error.h"

namespace tutti::runtime {

using State = MeetingPlace::State;

struct MeetingPlace::Attendance::Round {
  Round(const Key& number, int ranks) : key(number), guests(ranks), has_come(ranks) {}
  const Key key;
  std::vector<Guest> guests;  // by rank
  std::vector<bool> has_come;
  std::size_t come = 0, gone = 0;
  void put_on_device(const Guest& last);
  State state = State::open;
  std::optional<cuda::Event> done;
};

namespace {

// A call of guests whose buffers lie on one device, as reductions there.
class OneDevice {
 public:
  explicit OneDevice(std::span<const Guest> guests) : guests_(guests), call_(Call::unpack(guests[0].tag)) {}

  void enqueue(cuda::Stream stream) {
    for (const Guest& guest : guests_)
      for (const cuda::Event* event : guest.ready) event->hold(stream);
    switch (call_.collective) {
      case Collective::all_reduce: reduce(0, outputs(), stream); break;
      case Collective::reduce_scatter:
        for (const Guest& guest : guests_) reduce(rank_of(guest) * row_bytes(), {{guest.output}}, stream);
        break;
      case Collective::all_gather:
        for (const Guest& guest : guests_) copy(guest.input, rank_of(guest) * row_bytes(), stream);
        break;
      case Collective::broadcast: copy(guests_[call_.root].input, 0, stream); break;
      case Collective::barrier: break;
    }
  }

 private:
  std::size_t row_bytes() const { return call_.count * size_of(call_.dtype); }
  std::size_t rank_of(const Guest& guest) const { return static_cast<std::size_t>(&guest - guests_.data()); }
  std::vector<ReduceTarget> outputs() const {
    std::vector<ReduceTarget> targets;
    for (const Guest& guest : guests_) targets.push_back({guest.output});
    return targets;
  }

  // targets = the combination of all inputs' elements from byte `offset` on.
  void reduce(std::size_t offset, const std::vector<ReduceTarget>& targets, cuda::Stream stream) const {
    std::vector<int> bounds;
    std::vector<ReduceSource> sources;
    for (int rank = 0; rank <= static_cast<int>(guests_.size()); ++rank) bounds.push_back(rank);
    const std::vector<std::uint8_t> joins = canonical_joins(bounds);
    for (const Guest& guest : guests_) sources.push_back({guest.input + offset, joins[sources.size()]});
    const ReduceSpec spec{call_.dtype, call_.op, true, static_cast<std::uint32_t>(guests_.size())};
    cuda::reduce(spec, sources, targets, call_.count, stream);
  }

  // All outputs' elements from byte `offset` on = from, where they are not the same memory already.
  void copy(const std::byte* from, std::size_t offset, cuda::Stream stream) const {
    std::vector<ReduceTarget> targets;
    for (const Guest& guest : guests_)
      if (guest.output + offset != from) targets.push_back({guest.output + offset});
    if (targets.empty()) return;
    const ReduceSource source{from};
    cuda::reduce({.dtype = call_.dtype, .op = call_.op}, {&source, 1}, targets, call_.count, stream);
  }

  std::span<const Guest> guests_;
  const Call call_;
};

}  // namespace

std::unique_ptr<MeetingPlace::Attendance> MeetingPlace::attend(std::uint64_t communicator, std::uint32_t sequence,
                                                               int ranks, int rank, const Guest& guest) {
  std::unique_ptr<Attendance> attendance;  // leaves, where something is thrown, without the lock
  const std::lock_guard lock(mutex_);
  const Key key{communicator, sequence};
  auto& round = rounds_[key];
  if (round == nullptr) round = std::make_shared<Attendance::Round>(key, ranks);
  bool together = guest.device >= 0;
  for (int other = 0; other < ranks; ++other) {
    const Guest& there = round->guests[other];
    if (!round->has_come[other]) continue;
    if (there.tag != guest.tag) throw TagMismatch{other, guest.tag, there.tag};
    together = together && there.device == guest.device;
  }
  round->guests[rank] = guest;
  round->has_come[rank] = true;
  ++round->come;
  attendance.reset(new Attendance(*this, round));
  if (round->state == State::open && !together) round->state = State::apart;
  if (round->state != State::open || round->come < round->guests.size()) return attendance;
  try {
    round->put_on_device(guest);
  } catch (const Error& error) {
    attendance->refused_ = error;
  }
  return attendance;
}

// Where CUDA refuses a part of it, `done` is behind what it took.
void MeetingPlace::Attendance::Round::put_on_device(const Guest& last) {
  state = State::off;
  const cuda::OnDevice here(last.device);
  done.emplace(last.device);
  try {
    OneDevice(guests).enqueue(last.stream);
  } catch (const Error&) {
    done->record(last.stream);
    throw;
  }
  done->record(last.stream);
  state = State::together;
}

void MeetingPlace::leave(const Key& key) {
  const auto found = rounds_.find(key);
  if (found != rounds_.end() && ++found->second->gone == found->second->guests.size()) rounds_.erase(found);
}

MeetingPlace::Attendance::Attendance(MeetingPlace& place, std::shared_ptr<Round> round)
    : place_(place), round_(std::move(round)) {}

MeetingPlace::Attendance::~Attendance() {
  const std::lock_guard lock(place_.mutex_);
  if (round_->state == State::open) round_->state = State::off;
  place_.leave(round_->key);
}

State MeetingPlace::Attendance::state() const {
  const std::lock_guard lock(place_.mutex_);
  return round_->state;
}

int MeetingPlace::Attendance::missing() const {
  const std::lock_guard lock(place_.mutex_);
  const auto found = std::ranges::find(round_->has_come, false);
  return found == round_->has_come.end() ? -1 : static_cast<int>(found - round_->has_come.begin());
}

bool MeetingPlace::Attendance::is_done() const {
  const std::lock_guard lock(place_.mutex_);
  return round_->done->is_done();
}

void MeetingPlace::Attendance::hold(cuda::Stream stream) const {
  const std::lock_guard lock(place_.mutex_);
  round_->done->hold(stream);
}

bool MeetingPlace::Attendance::withdraw() {
  const std::lock_guard lock(place_.mutex_);
  if (round_->state == State::open) round_->state = State::off;
  return !round_->done || round_->done->is_done();
}

}  // namespace tutti::runtime
