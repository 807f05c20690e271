#include "schedule/interpret.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>

#include "schedule/interpret_memory.h"
#include "schedule/interpret_transfer.h"

namespace tutti::internal {
namespace {

constexpr std::size_t kMaxMessages = 1 << 20;  // of a channel: a mutant may name any

struct Channel {
  std::deque<Transfer> transfers;
  std::size_t sent = 0, received = 0;
  std::vector<std::size_t> posted;  // numbers of messages
  Transfer& at(std::size_t number) {
    if (number >= kMaxMessages) throw RunError{"a message that is never sent"};
    while (transfers.size() <= number) transfers.emplace_back();
    return transfers[number];
  }
  Transfer& claim(std::size_t number) {
    Transfer& transfer = at(number);
    if (transfer.claimed) throw RunError{"a message taken twice"};
    transfer.claimed = true;
    ++received;
    return transfer;
  }
  Transfer& claim_first() {
    std::size_t number = 0;
    while (at(number).claimed) ++number;
    return claim(number);
  }
  // A message counts as here when all before it are.
  bool has_arrived(std::size_t number) const {
    return std::all_of(transfers.begin(), transfers.begin() + number + 1,
                       [](const Transfer& transfer) { return transfer.arrived; });
  }
};

struct Rank {
  RankMemory memory;
  std::uint64_t priority;
  std::size_t step = 0;
  bool started = false, ended = false;
  std::vector<Transfer*> claimed;  // the sources of the reduce it stands at, nullptr for local ones
  std::vector<std::size_t> left;   // elements of that reduce still to be combined
};

class Interpreter {
 public:
  Interpreter(std::span<const Schedule> schedules, const Layout& layout, const Goal& goal, std::size_t count,
              bool in_place, std::uint64_t seed)
      : schedules_(schedules),
        holds_(goal.collective, layout.ranks(), goal.root),
        arithmetic_(layout, goal),
        dice_(seed),
        channels_(schedules.size() * schedules.size()) {
    for (const Schedule& schedule : schedules)
      ranks_.push_back({{schedule, layout, goal, count, in_place}, dice_.draw()});
  }

  void run();
  std::vector<std::uint64_t> output(int rank);  // checked

 private:
  bool act();
  bool can_advance(int rank);
  void advance(int rank);
  void enter(int rank);
  void send(int rank, const Step& step);
  void receive(int rank, const Step& step);
  void combine_one(int rank, const Step& step);
  void consume(int rank, const Step& step);
  void end(int rank);
  bool all_returned(int rank);
  void track(Transfer& transfer);

  int peer(int number) const;
  Channel& channel(int from, int to) { return channels_[from * ranks_.size() + peer(to)]; }
  bool done(int rank) const { return ranks_[rank].step == schedules_[rank].steps.size(); }
  const Step& step_of(int rank) const { return schedules_[rank].steps[ranks_[rank].step]; }

  std::span<const Schedule> schedules_;
  const Distribution holds_;
  Arithmetic arithmetic_;
  Dice dice_;
  std::vector<Rank> ranks_;
  std::vector<Channel> channels_;
  std::vector<Transfer*> tracked_;  // those that may still move by themselves
};

int Interpreter::peer(int number) const {
  if (number < 0 || number >= static_cast<int>(ranks_.size())) throw RunError{"a peer that does not exist"};
  return number;
}

void Interpreter::run() {
  while (act()) {
  }
  for (const Rank& rank : ranks_)
    if (!rank.ended) throw RunError{fmt::format("deadlock, with a rank at step {}", rank.step)};
  for (const Channel& channel : channels_)
    if (channel.sent != channel.received) throw RunError{"a message that is not received"};
}

// Does whatever the dice choose among all that could happen next. Everyone has a priority that seldom changes, so that
// one rank or one transfer is often delayed for as long as anything else can go on.
bool Interpreter::act() {
  struct Choice {
    std::uint64_t* priority = nullptr;
    int rank = 0;
    Transfer* transfer = nullptr;
  };
  std::vector<Choice> choices;
  for (int rank = 0; rank < static_cast<int>(ranks_.size()); ++rank)
    if (can_advance(rank)) choices.push_back({&ranks_[rank].priority, rank, nullptr});
  std::erase_if(tracked_, [](const Transfer* transfer) { return transfer->given_back && transfer->arrived; });
  for (Transfer* transfer : tracked_)
    if (transfer->can_move()) choices.push_back({&transfer->priority, 0, transfer});
  if (choices.empty()) return false;

  const Choice first = *std::ranges::max_element(choices, {}, [](const Choice& choice) { return *choice.priority; });
  const Choice choice = dice_.one_in(8) ? choices[dice_.draw() % choices.size()] : first;
  if (dice_.one_in(16)) *choice.priority = dice_.draw();
  if (choice.transfer != nullptr) {
    choice.transfer->move(dice_);
    return true;
  }
  try {
    advance(choice.rank);
  } catch (const RunError& error) {
    throw RunError{fmt::format("rank {}, step {}: {}", choice.rank, ranks_[choice.rank].step, error.what)};
  }
  return true;
}

bool Interpreter::can_advance(int rank) {
  const Rank& self = ranks_[rank];
  if (!self.started) return true;
  if (self.ended) return false;
  if (done(rank)) return all_returned(rank);
  const Step& step = step_of(rank);
  if (step.kind == StepKind::reduce)
    return std::ranges::all_of(self.claimed,
                               [](const Transfer* transfer) { return !transfer || transfer->can_be_consumed(); });
  if (step.kind == StepKind::wait_send) {
    const Channel& to = channel(rank, step.peer);
    return step.message <= to.sent && std::all_of(to.transfers.begin(), to.transfers.begin() + step.message,
                                                  [](const Transfer& transfer) { return transfer.given_back; });
  }
  if (step.kind == StepKind::wait_receive) {
    const Channel& from = channel(peer(step.peer), rank);
    return step.message <= from.posted.size() &&
           std::all_of(from.posted.begin(), from.posted.begin() + step.message,
                       [&](std::size_t number) { return from.has_arrived(number); });
  }
  return true;
}

bool Interpreter::all_returned(int rank) {
  for (std::size_t other = 0; other < ranks_.size(); ++other) {
    const Channel& to = channel(rank, other);
    for (std::size_t i = 0; i < to.sent; ++i)
      if (!to.transfers[i].given_back) return false;
    const Channel& from = channel(other, rank);
    for (const std::size_t number : from.posted)
      if (!from.has_arrived(number)) return false;
  }
  return true;
}

void Interpreter::advance(int rank) {
  Rank& self = ranks_[rank];
  if (!self.started) {
    self.started = true;
    return enter(rank);
  }
  if (done(rank)) return end(rank);
  const Step& step = step_of(rank);
  if (step.kind == StepKind::reduce && !self.left.empty()) return combine_one(rank, step);
  if (step.kind == StepKind::reduce) consume(rank, step);
  if (step.kind == StepKind::send) send(rank, step);
  if (step.kind == StepKind::receive) receive(rank, step);
  ++self.step;
  enter(rank);
}

// Called when a rank comes to stand at a step: a reduce claims its messages then, in the order of its sources.
void Interpreter::enter(int rank) {
  Rank& self = ranks_[rank];
  if (done(rank) || step_of(rank).kind != StepKind::reduce) return;
  self.claimed.clear();
  for (const Source& source : schedules_[rank].sources_of(step_of(rank))) {
    Channel* from = source.peer == kLocal ? nullptr : &channel(peer(source.peer), rank);
    self.claimed.push_back(from ? &from->claim_first() : nullptr);
  }
  self.left = dice_.shuffled(self.memory.length(step_of(rank).region));
}

void Interpreter::send(int rank, const Step& step) {
  Channel& to = channel(rank, step.peer);
  Transfer& transfer = to.at(to.sent++);
  transfer.sent = true;
  transfer.from = step.region;
  transfer.source = ranks_[rank].memory.lent(schedules_[rank], step);
  transfer.buffered = dice_.one_in(3);
  transfer.buffer.resize(transfer.source.size());
  track(transfer);
}

void Interpreter::receive(int rank, const Step& step) {
  if (step.region.space == Space::input) throw RunError{"the caller's input is written"};
  Channel& from = channel(peer(step.peer), rank);
  if (!from.posted.empty() && from.posted.back() > step.message) throw RunError{"receives out of order"};
  Transfer& transfer = from.claim(step.message);
  from.posted.push_back(step.message);
  transfer.posted = true;
  transfer.to = step.region;
  transfer.target = ranks_[rank].memory.lent(schedules_[rank], step);
  track(transfer);
}

void Interpreter::track(Transfer& transfer) {
  if (transfer.priority != 0) return;
  transfer.priority = dice_.draw();
  tracked_.push_back(&transfer);
}

void Interpreter::combine_one(int rank, const Step& step) {
  Rank& self = ranks_[rank];
  const std::size_t i = self.left.back();
  self.left.pop_back();
  std::vector<std::uint64_t> stack;
  for (std::size_t s = 0; s < step.part_count; ++s) {
    const Source& source = schedules_[rank].sources_of(step)[s];
    const Transfer* const message = self.claimed[s];
    const Elements local = message ? Elements() : self.memory.at(source.region);
    if ((message ? message->source.size() : local.size()) != self.memory.length(step.region))
      throw RunError{"a source of another length than the result"};
    stack.push_back(read(message ? message->content(i) : local[i]));
    for (int joins = 0; joins < source.joins; ++joins) {
      if (stack.size() < 2) throw RunError{"a tree that joins more than there is"};
      const std::uint64_t top = stack.back();
      stack.pop_back();
      stack.back() = arithmetic_.combine(stack.back(), top);
    }
  }
  if (stack.size() != 1) throw RunError{"a tree that does not end in one result"};
  self.memory.at(step.region)[i] = {step.finish ? arithmetic_.finish(stack[0]) : stack[0], true};
}

// The end of a reduce: its messages are given back. Types are checked here, as they would be misread by then.
void Interpreter::consume(int rank, const Step& step) {
  if (step.region.space == Space::input) throw RunError{"the caller's input is written"};
  if (step.region.space == Space::scratch && step.finish) throw RunError{"a finished result among partial ones"};
  for (std::size_t s = 0; s < step.part_count; ++s) {
    const Source& source = schedules_[rank].sources_of(step)[s];
    Transfer* transfer = ranks_[rank].claimed[s];
    const Region& from = transfer ? transfer->from : source.region;
    if (source.partial != (from.space == Space::scratch))
      throw RunError{"a source of another type than it is taken for"};
    if (transfer != nullptr) transfer->given_back = transfer->arrived = true;
    if (step.region.space != Space::scratch && !step.finish && (source.partial || step.part_count > 1))
      throw RunError{"a partial result rounded"};
  }
}

void Interpreter::end(int rank) {
  ranks_[rank].ended = true;
  const bool all_started = std::ranges::all_of(ranks_, [](const Rank& other) { return other.started; });
  if (!holds_.traits.has_bytes() && !all_started) throw RunError{"a rank leaves the barrier before all have entered"};
}

std::vector<std::uint64_t> Interpreter::output(int rank) {
  std::vector<std::uint64_t> values;
  RankMemory& memory = ranks_[rank].memory;
  for (int slice = 0; slice < schedules_[rank].slices; ++slice) {
    if (!holds_.gets(rank, slice)) continue;
    for (int chunk = 0; chunk < schedules_[rank].chunks; ++chunk) {
      const Region region{Space::output, 0, static_cast<std::uint32_t>(slice), static_cast<std::uint16_t>(chunk)};
      std::size_t element = memory.partition().chunk(region.slice, region.chunk).begin;
      for (const Element& found : memory.at(region)) {
        values.push_back(read(found));
        if (values.back() != arithmetic_.expected(rank, region.slice, element++))
          throw RunError{fmt::format("rank {}'s element {} is wrong", rank, element - 1)};
      }
    }
  }
  return values;
}

}  // namespace

Run interpret(std::span<const Schedule> schedules, const Layout& layout, const Goal& goal, std::size_t count,
              bool in_place, std::uint64_t seed) {
  Run run;
  try {
    Interpreter interpreter(schedules, layout, goal, count, in_place, seed);
    interpreter.run();
    for (int rank = 0; rank < layout.ranks(); ++rank) run.outputs.push_back(interpreter.output(rank));
  } catch (const RunError& error) {
    run.error_text = error.what;
  }
  return run;
}

}  // namespace tutti::internal
