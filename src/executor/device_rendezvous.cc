#include "executor/device_rendezvous.h"

#include <emmintrin.h>

#include <algorithm>
#include <atomic>

#include "cuda/reduce.h"
#include "schedule/builder.h"
#include "transport/transport.h"
#include "tutti/error.h"
#include "types/collective.h"

namespace tutti::internal {

using State = DeviceRendezvous::State;

struct DeviceRendezvous::Participation::Round {
  Round(const Key& number, int ranks) : key(number), participants(ranks), has_come(ranks) {}
  const Key key;
  std::vector<Participant> participants;  // by rank
  std::vector<bool> has_come;
  std::size_t come = 0, gone = 0;
  void put_on_device(const Participant& last);
  std::atomic<State> state = State::open;
  // Not changed once `state` is together; then read without the lock.
  std::shared_ptr<Met> met;
  std::uint32_t number = 0;  // that met->done has when it is done
  cuda::EventPool::Taken done;
};

namespace {

// A call of participants whose buffers lie on one device, as reductions there.
class OneDevice {
 public:
  explicit OneDevice(std::span<const Participant> participants)
      : participants_(participants),
        call_(Call::unpack(participants[0].tag)),
        holds_(call_.collective, static_cast<int>(participants.size()), call_.root) {}

  void enqueue(cuda::Stream stream) {
    for (const Participant& participant : participants_)
      for (const cuda::Event* event : participant.ready) event->hold(stream);
    if (holds_.traits.is_scan()) return scan(stream);
    for (int row = 0; row < holds_.rows(); ++row) holds_.traits.combines() ? reduce(row, stream) : copy(row, stream);
  }

 private:
  std::size_t offset_of(int row, const RowRange& held) const {
    return static_cast<std::size_t>(held.index(row)) * call_.count * size_of(call_.dtype);
  }
  const std::byte* input_of(int rank, int row) const {
    return participants_[rank].input + offset_of(row, holds_.input(rank));
  }
  // Where the row is wanted, but there.
  std::vector<ReduceTarget> targets_of(int row, const std::byte* but) const {
    std::vector<ReduceTarget> targets;
    for (int rank = 0; rank < holds_.ranks; ++rank) {
      if (!holds_.gets(rank, row)) continue;
      std::byte* const to = participants_[rank].output + offset_of(row, holds_.output(rank));
      if (to != but) targets.push_back({to});
    }
    return targets;
  }

  void reduce(int row, cuda::Stream stream) const { combine(row, holds_.ranks, targets_of(row, nullptr), stream); }

  // The last rank first: in place, an output is the memory of an input that the ranks behind it combine.
  void scan(cuda::Stream stream) const {
    for (int rank = holds_.ranks - 1; rank >= 0; --rank)
      if (holds_.gets(rank, 0))
        combine(0, holds_.traits.result == Result::prefix ? rank + 1 : rank, {{participants_[rank].output}}, stream);
  }

  // Of the inputs of the first so many ranks.
  void combine(int row, int ranks, const std::vector<ReduceTarget>& targets, cuda::Stream stream) const {
    std::vector<int> bounds;
    std::vector<ReduceSource> sources;
    for (int rank = 0; rank <= ranks; ++rank) bounds.push_back(rank);
    const std::vector<std::uint8_t> joins = canonical_joins(bounds);
    for (int rank = 0; rank < ranks; ++rank) sources.push_back({input_of(rank, row), joins[sources.size()]});
    cuda::reduce({call_.dtype, call_.op, true, static_cast<std::uint32_t>(ranks)}, sources, targets, call_.count,
                 stream);
  }

  // Where it is not the same memory already.
  void copy(int row, cuda::Stream stream) const {
    const ReduceSource source{input_of(holds_.origin(row), row)};
    const std::vector<ReduceTarget> targets = targets_of(row, source.data);
    if (targets.empty()) return;
    cuda::reduce({.dtype = call_.dtype, .op = call_.op}, {&source, 1}, targets, call_.count, stream);
  }

  std::span<const Participant> participants_;
  const Call call_;
  const Distribution holds_;
};

}  // namespace

std::unique_ptr<DeviceRendezvous::Participation> DeviceRendezvous::enter(std::uint64_t communicator,
                                                                         std::uint32_t sequence, int ranks, int rank,
                                                                         const Participant& participant) {
  std::unique_ptr<Participation> participation;  // leaves, where something is thrown, without the lock
  const auto lock = locked();
  const Key key{communicator, sequence};
  auto& round = rounds_[key];
  if (round == nullptr) round = std::make_shared<Participation::Round>(key, ranks);
  bool together = participant.device >= 0;
  for (int other = 0; other < ranks; ++other) {
    const Participant& there = round->participants[other];
    if (!round->has_come[other]) continue;
    if (there.tag != participant.tag) throw TagMismatch{other, participant.tag, there.tag};
    together = together && there.device == participant.device;
  }
  round->participants[rank] = participant;
  round->has_come[rank] = true;
  ++round->come;
  participation.reset(new Participation(*this, round));
  if (round->state == State::open && !together) round->state = State::apart;
  if (round->state != State::open || round->come < round->participants.size()) return participation;
  try {
    round->put_on_device(participant);
  } catch (const Error& error) {
    participation->refused_ = error;
  }
  return participation;
}

// All ranks arrive and leave at about the same time, and hold it for less than a microsecond; only the last to arrive
// holds it longer, when no other is about to take it. To sleep and to be woken takes many times as long.
std::unique_lock<std::mutex> DeviceRendezvous::locked() {
  constexpr int kTries = 500;
  std::unique_lock lock(mutex_, std::try_to_lock);
  for (int tried = 1; !lock.owns_lock() && tried < kTries; ++tried) {
    _mm_pause();
    static_cast<void>(lock.try_lock());
  }
  if (!lock.owns_lock()) lock.lock();
  return lock;
}

// Where CUDA refuses a part of it, `done` is behind what it took.
void DeviceRendezvous::Participation::Round::put_on_device(const Participant& last) {
  state = State::off;
  const cuda::OnDevice here(last.device);
  met = last.met;
  done = met->events.take();
  try {
    OneDevice(participants).enqueue(last.stream);
  } catch (const Error&) {
    done->record(last.stream);
    throw;
  }
  done->record(last.stream);
  number = ++met->last;
  met->done.signal(number, last.stream);
  state = State::together;
}

void DeviceRendezvous::leave(const Key& key) {
  const auto found = rounds_.find(key);
  if (found != rounds_.end() && ++found->second->gone == found->second->participants.size()) rounds_.erase(found);
}

DeviceRendezvous::Participation::Participation(DeviceRendezvous& rendezvous, std::shared_ptr<Round> round)
    : rendezvous_(rendezvous), round_(std::move(round)) {}

DeviceRendezvous::Participation::~Participation() {
  const auto lock = rendezvous_.locked();
  if (round_->state == State::open) round_->state = State::off;
  rendezvous_.leave(round_->key);
}

State DeviceRendezvous::Participation::state() const { return round_->state; }

int DeviceRendezvous::Participation::missing() const {
  const std::lock_guard lock(rendezvous_.mutex_);
  const auto found = std::ranges::find(round_->has_come, false);
  return found == round_->has_come.end() ? -1 : static_cast<int>(found - round_->has_come.begin());
}

bool DeviceRendezvous::Participation::is_done() const { return round_->met->done.has(round_->number); }

void DeviceRendezvous::Participation::hold(cuda::Stream stream) const { round_->done->hold(stream); }

bool DeviceRendezvous::Participation::withdraw() {
  const std::lock_guard lock(rendezvous_.mutex_);
  if (round_->state == State::open) round_->state = State::off;
  return !round_->done || round_->done->is_done();
}

}  // namespace tutti::internal
