#include "schedule/verify_execution.h"

#include <fmt/format.h>

#include <algorithm>

#include "schedule/text.h"
#include "schedule/verify_form.h"

namespace tutti::internal {
namespace {

void join(std::vector<int>& clock, const std::vector<int>& other) {
  if (clock.empty()) clock = other;
  for (std::size_t i = 0; i < other.size(); ++i) clock[i] = std::max(clock[i], other[i]);
}

}  // namespace

Execution::Execution(std::span<const Schedule> schedules, const Layout& layout, const Goal& goal,
                     std::span<const std::vector<Shortcut>> shortcuts)
    : schedules_(schedules),
      layout_(layout),
      goal_(goal),
      holds_(goal.collective, layout.ranks(), goal.root),
      shortcuts_(shortcuts),
      ranks_(layout.ranks()),
      channels_(ranks_.size() * ranks_.size()) {
  for (int rank = 0; rank < layout.ranks(); ++rank) {
    const Schedule& schedule = schedules[rank];
    const int rows = std::max(1, inputs_of(layout, goal.collective, rank));
    ranks_[rank].clock.assign(ranks_.size(), 0);
    const int parts = holds_.traits.has_rows() ? layout.ranks() : schedule.slices;  // of a buffer
    ranks_[rank].inputs.resize(std::size_t{1} * rows * parts * schedule.chunks);
    if (is_apart()) ranks_[rank].outputs.resize(ranks_[rank].inputs.size());
    ranks_[rank].scratch.resize(std::size_t{1} * schedule.scratch_rows * schedule.chunks);
  }
}

void Execution::run() {
  for (int rank = 0; rank < layout_.ranks(); ++rank) wake(rank);
  while (!ready_.empty()) {
    const int rank = ready_.front();
    ready_.pop_front();
    ranks_[rank].queued = false;
    while (ranks_[rank].next < static_cast<int>(schedules_[rank].steps.size()) && advance(rank)) {
    }
  }
  for (int rank = 0; rank < layout_.ranks(); ++rank)
    if (ranks_[rank].next < static_cast<int>(schedules_[rank].steps.size())) deadlock();
  for (int rank = 0; rank < layout_.ranks(); ++rank) end(rank);
}

void Execution::wake(int rank) {
  if (ranks_[rank].queued) return;
  ranks_[rank].queued = true;
  ready_.push_back(rank);
}

bool Execution::advance(int rank) {
  Rank& self = ranks_[rank];
  const Step& step = schedules_[rank].steps[self.next];
  switch (step.kind) {
    case StepKind::send: send(rank, step); break;
    case StepKind::receive: receive(rank, step); break;
    case StepKind::reduce:
      if (!reduce(rank, step)) return false;
      break;
    case StepKind::wait_send:
      if (!wait_send(rank, step)) return false;
      break;
    case StepKind::wait_receive:
      if (!wait_receive(rank, step)) return false;
      break;
  }
  self.clock[rank] = ++self.next;
  return true;
}

void Execution::send(int rank, const Step& step) {
  Rank& self = ranks_[rank];
  Channel& to = channel(rank, step.peer);
  Message& sent = to.at(to.sent++);
  sent.send_step = self.next;
  for (std::size_t i = 0; i < Schedule::rows_of(step); ++i)
    sent.values.push_back(load({schedules_[rank].row_of(step, i), rank, self.next, false, &sent, step.peer}));
  sent.rounds = self.rounds + 1;
  join(sent.clock, clock_of_send(rank, sent.values.front()));
  ++messages_;
  if (sent.receive_step != kNotYet) transfer(rank, step.peer, sent);
  wake(step.peer);
}

void Execution::receive(int rank, const Step& step) {
  Rank& self = ranks_[rank];
  Channel& from = channel(step.peer, rank);
  const bool sent = step.message < from.sent;
  from.claimed.claim(step.message);
  Message& posted = from.at(step.message);
  posted.number = step.message;
  from.posted.push_back(&posted);
  posted.receive_step = self.next;
  join(posted.clock, self.clock);
  if (sent) transfer(step.peer, rank, posted);
}

// The copy of a posted message. It may happen at any moment from here on, and is over when the receiver has waited for
// it.
void Execution::transfer(int from, int to, Message& message) {
  check_rows(from, to, message);
  const Schedule& schedule = schedules_[to];
  const Step& step = schedule.steps[message.receive_step];
  for (std::size_t i = 0; i < message.values.size(); ++i)
    store({schedule.row_of(step, i), to, message.receive_step, true, &message, from}, message.values[i], message.clock);
  give_back(from, to, message);
}

void Execution::check_rows(int from, int to, const Message& message) const {
  const Step& send = schedules_[from].steps[message.send_step];
  const Step& receive = schedules_[to].steps[message.receive_step];
  const auto refuse = [&](const std::string& what) { fail(to, message.receive_step, what); };
  if (Schedule::rows_of(send) != Schedule::rows_of(receive))
    refuse(fmt::format("expects {} rows, {}, but rank {} sends {}, {}", Schedule::rows_of(receive),
                       extent_text(schedules_[to], receive), from, Schedule::rows_of(send),
                       extent_text(schedules_[from], send)));
  for (std::size_t i = 0; i < Schedule::rows_of(send); ++i) {
    const Region sent = schedules_[from].row_of(send, i), wanted = schedules_[to].row_of(receive, i);
    if (sent.slice != wanted.slice || sent.chunk != wanted.chunk)
      refuse(fmt::format("expects {} but rank {} sends {}", to_text(wanted), from, to_text(sent)));
    if ((sent.space == Space::scratch) != (wanted.space == Space::scratch))
      refuse(fmt::format("{} cannot hold rank {}'s {}: only one of them holds partial results", to_text(wanted), from,
                         to_text(sent)));
  }
}

void Execution::give_back(int from, int to, Message& message) {
  message.taken = true;
  Channel& between = channel(from, to);
  while (between.taken < between.sent && between.messages[between.taken].taken) ++between.taken;
  wake(from);
  wake(to);
}

bool Execution::gather(int rank, const Step& step) {
  std::vector<Message*>& arrived = ranks_[rank].arrived;
  while (arrived.size() < step.part_count) {
    const Source& source = schedules_[rank].sources_of(step)[arrived.size()];
    Message* message = nullptr;
    if (source.peer != kLocal) {
      Channel& from = channel(source.peer, rank);
      if (from.claimed.first_unclaimed() >= from.sent) return false;
      message = &from.messages[from.claimed.claim_first()];
    }
    arrived.push_back(message);
  }
  return true;
}

bool Execution::reduce(int rank, const Step& step) {
  if (!gather(rank, step)) return false;
  Rank& self = ranks_[rank];
  for (const Message* message : self.arrived) {
    if (message == nullptr) continue;
    join(self.clock, message->clock);
    self.rounds = std::max(self.rounds, message->rounds);
  }
  std::vector<int> partial;
  for (std::size_t i = 0; i < step.part_count; ++i) {
    const Source& source = schedules_[rank].sources_of(step)[i];
    const Message* message = self.arrived[i];
    partial.push_back(message ? take(rank, source, *message) : load({source.region, rank, self.next}));
    for (int joins = 0; joins < source.joins; ++joins) {
      const int top = partial.back();
      partial.pop_back();
      partial.back() = expressions_.combine(partial.back(), top);
    }
  }
  const int result = step.finish ? expressions_.finish(partial.back()) : partial.back();
  check_finish(rank, step, partial.back());
  store({step.region, rank, self.next, true}, result, self.clock);
  note_shortcuts(rank, result);
  for (std::size_t i = 0; i < step.part_count; ++i) {
    Message* message = self.arrived[i];
    if (message == nullptr) continue;
    message->receiver_done = self.next;
    message->clock = {};
    give_back(schedules_[rank].sources_of(step)[i].peer, rank, *message);
  }
  self.arrived.clear();
  return true;
}

int Execution::take(int rank, const Source& source, const Message& message) const {
  const Schedule& sender = schedules_[source.peer];
  const Step& send = sender.steps[message.send_step];
  const auto refuse = [&](const std::string& what) {
    fail(rank, ranks_[rank].next,
         fmt::format("expects {} but rank {} sends {}", what, source.peer, extent_text(sender, send)));
  };
  if (Schedule::rows_of(send) != 1) refuse("one region");
  if (send.region.slice != source.region.slice || send.region.chunk != source.region.chunk)
    refuse(fmt::format("slice {} chunk {}", source.region.slice, source.region.chunk));
  if (source.partial != (send.region.space == Space::scratch)) refuse(source.partial ? "partial results" : "elements");
  return message.values.front();
}

bool Execution::wait_send(int rank, const Step& step) {
  Channel& to = channel(rank, step.peer);
  if (to.taken < step.message) return false;
  while (to.send_waits < step.message) to.messages[to.send_waits++].sender_done = ranks_[rank].next;
  return true;
}

bool Execution::wait_receive(int rank, const Step& step) {
  Rank& self = ranks_[rank];
  Channel& from = channel(step.peer, rank);
  // In order: a message whose turn has not come counts as not here, even where a transport has moved its bytes.
  if (step.message > 0 && from.taken <= from.posted[step.message - 1]->number) return false;
  for (; from.receive_waits < step.message; ++from.receive_waits) {
    Message& received = *from.posted[from.receive_waits];
    join(self.clock, received.clock);
    received.clock = {};
    received.receiver_done = self.next;
    self.rounds = std::max(self.rounds, received.rounds);
  }
  return true;
}

void Execution::end(int rank) {
  Rank& self = ranks_[rank];
  for (int peer = 0; peer < layout_.ranks(); ++peer) {
    const Channel& from = channel(peer, rank);
    for (std::size_t i = from.receive_waits; i < from.posted.size(); ++i) {
      join(self.clock, from.posted[i]->clock);
      self.rounds = std::max(self.rounds, from.posted[i]->rounds);
    }
  }
}

Execution::Cell& Execution::cell(int rank, const Region& region) {
  const std::size_t chunks = schedules_[rank].chunks;
  if (is_scratch(region.space)) return ranks_[rank].scratch[region.row * chunks + region.chunk];
  const bool is_input = region.space == Space::input;
  const int slice = static_cast<int>(region.slice);
  const auto part =
      static_cast<std::size_t>(is_input ? holds_.input_position(rank, slice) : holds_.output_position(rank, slice));
  const std::size_t parts = holds_.traits.has_rows() ? ranks_.size() : schedules_[rank].slices;
  std::vector<Cell>& cells = is_input || !is_apart() ? ranks_[rank].inputs : ranks_[rank].outputs;
  return cells[((is_input ? region.row : 0) * parts + part) * chunks + region.chunk];
}

int Execution::load(const Access& access) {
  if (!traits_of(goal_.collective).has_bytes()) return 0;  // its messages are empty
  const Region& region = access.region;
  Cell& from = cell(access.rank, region);
  if (from.written) check_order(*from.written, access, ranks_[access.rank].clock);
  from.read.push_back(access);
  if (region.space == Space::input) {
    const bool by_leaf = traits_of(goal_.collective).combines();
    const int original = expressions_.leaf(by_leaf ? layout_.first_leaf[access.rank] + region.row : access.rank);
    if (from.value && (from.value->expression != original || from.value->slice != region.slice))
      fail(access.rank, access.step,
           to_text(region) + " is read after it was overwritten: in place it is the output's memory");
    return original;
  }
  if (!from.value) fail(access.rank, access.step, to_text(region) + " is read before anything was written there");
  if (from.value->slice != region.slice)
    fail(access.rank, access.step, fmt::format("{} is read but holds slice {}", to_text(region), from.value->slice));
  return from.value->expression;
}

void Execution::store(const Access& access, int expression, const Clock& start) {
  if (!traits_of(goal_.collective).has_bytes()) return;
  Cell& to = cell(access.rank, access.region);
  if (to.written) check_order(*to.written, access, start);
  for (const Access& read : to.read)
    if (read.step != access.step) check_order(read, access, start);  // a reduce may overwrite its own source
  to.read.clear();
  to.written = access;
  to.value = Value{expression, access.region.slice};
}

void Execution::check_order(const Access& earlier, const Access& later, const Clock& later_start) const {
  if (!ended_before(earlier, later_start)) race(earlier, later);
}

bool Execution::ended_before(const Access& access, const Clock& start) {
  if (access.message == nullptr) return start[access.rank] > access.step;
  const Message& message = *access.message;
  if (access.write) return start[access.rank] > message.receiver_done;
  return start[access.rank] > message.sender_done || start[access.peer] > message.receiver_done;
}

std::optional<int> Execution::output(int rank, int slice, int chunk) {
  const Region region{Space::output, 0, static_cast<std::uint32_t>(slice), static_cast<std::uint16_t>(chunk)};
  const Cell& at = cell(rank, region);
  return at.value && at.value->slice == region.slice ? std::optional(at.value->expression) : std::nullopt;
}

bool Execution::happened_after_all_starts(int rank) const {
  const Clock& clock = ranks_[rank].clock;
  for (int other = 0; other < layout_.ranks(); ++other)
    if (other != rank && clock[other] == 0) return false;
  return true;
}

int Execution::rounds() const {
  int most = 0;
  for (const Rank& rank : ranks_) most = std::max(most, rank.rounds);
  return most;
}

}  // namespace tutti::internal
