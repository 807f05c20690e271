#include "schedule/cost.h"

#include <algorithm>

#include "schedule/cost_state.h"
#include "schedule/partition.h"
#include "tutti/error.h"

namespace tutti::internal {
namespace {

using namespace cost_state;

// Every rank runs its steps as soon as it can: a discrete simulation without a queue of events, as matching is by order
// alone.
class Simulation {
 public:
  Simulation(std::span<const Schedule> schedules, const Layout& layout, std::size_t count, std::size_t element_bytes,
             std::size_t accumulation_bytes, const CostModel& model, const LinkBetween& link)
      : schedules_(schedules),
        layout_(layout),
        model_(model),
        link_(link),
        element_bytes_(element_bytes),
        accumulation_bytes_(accumulation_bytes),
        ranks_(schedules.size()),
        channels_(schedules.size() * schedules.size()),
        here_(layout.hosts()) {
    for (const int host : layout.host) ++here_[host];
    for (std::size_t rank = 0; rank < ranks_.size(); ++rank)
      if (is_crowded(layout.host[rank]))
        ranks_[rank].sharing = static_cast<double>(here_[layout.host[rank]]) / model.cores;
    partition_.count = count;
    if (!schedules.empty()) partition_.slices = schedules[0].exact_slices ? schedules.size() : schedules[0].slices;
    partition_.chunks = schedules.empty() ? 1 : schedules[0].chunks;
  }

  void run() {
    for (bool progress = true; progress;) {
      progress = false;
      for (std::size_t rank = 0; rank < ranks_.size(); ++rank)
        while (ranks_[rank].step < schedules_[rank].steps.size() && advance(rank)) {
          ++ranks_[rank].step;
          progress = true;
        }
    }
    for (std::size_t rank = 0; rank < ranks_.size(); ++rank) take_rest(rank);
  }

  Cost cost() const;

 private:
  bool advance(int rank) {
    const Step& step = schedules_[rank].steps[ranks_[rank].step];
    if (step.kind != StepKind::send) ranks_[rank].reduced = nullptr;
    switch (step.kind) {
      case StepKind::send: send(rank, step); return true;
      case StepKind::receive: receive(rank, step); return true;
      case StepKind::reduce: return reduce(rank, step);
      case StepKind::wait_send: return wait(rank, channel(rank, step.peer).sent, step.message, false);
      case StepKind::wait_receive: return wait(rank, channel(step.peer, rank).posted, step.message, true);
    }
    return false;
  }

  void send(int rank, const Step& step);
  void receive(int rank, const Step& step);
  bool reduce(int rank, const Step& step);
  double await_claimed(int rank);
  double crowded_us(double us) const;
  bool is_crowded(int host) const { return model_.cores > 0 && here_[host] > model_.cores; }
  double turning_us(int rank, const LinkCost& link) const {
    return is_crowded(layout_.host[rank]) ? link.switch_us : 0;
  }

  bool wait(int rank, const std::vector<Message*>& lent, std::size_t count, bool receives) {
    const std::span<Message* const> awaited = std::span(lent).first(std::min(count, lent.size()));
    if (awaited.size() < count ||
        !std::ranges::all_of(awaited, [](const Message* message) { return message->taken.has_value(); }))
      return false;
    for (Message* message : awaited) {
      ranks_[rank].wait_until(*message->taken, turning_us(rank, *message->link));
      if (receives && !message->received) take(rank, *message);
    }
    return true;
  }

  // What a message costs its receiver is the end of its way: it has not arrived before.
  void take(int rank, Message& message) {
    message.received = true;
    Rank& self = ranks_[rank];
    const double busy = message.link->busy.at(static_cast<double>(message.bytes));
    self.now = std::max(self.now, self.occupy(*message.taken - busy, busy));
  }

  // A schedule ends when all that it lent has been given back, without a step that says so.
  void take_rest(int rank) {
    std::vector<Message*> rest;
    for (int peer = 0; peer < layout_.ranks(); ++peer)
      for (Message* message : channel(peer, rank).posted)
        if (message->taken && !message->received) rest.push_back(message);
    std::ranges::sort(rest, {}, [](const Message* message) { return *message->taken; });
    for (Message* message : rest) {
      ranks_[rank].wait_until(*message->taken, turning_us(rank, *message->link));
      take(rank, *message);
    }
  }

  static void complete(Message& message) {
    if (message.arrives && message.posted) message.taken = std::max(*message.arrives, *message.posted);
  }
  std::size_t bytes(const Region& region) const {
    return partition_.chunk(region.slice, region.chunk).size() *
           (region.space == Space::scratch ? accumulation_bytes_ : element_bytes_);
  }
  Channel& channel(int from, int to) { return channels_[from * ranks_.size() + to]; }

  std::span<const Schedule> schedules_;
  const Layout& layout_;
  const CostModel& model_;
  const LinkBetween& link_;
  std::size_t element_bytes_, accumulation_bytes_;
  Partition partition_;
  std::vector<Rank> ranks_;
  std::vector<Channel> channels_;
  std::vector<int> here_;  // ranks, by host
  std::size_t messages_between_hosts_ = 0;
};

void Simulation::send(int rank, const Step& step) {
  Rank& self = ranks_[rank];
  Channel& to = channel(rank, step.peer);
  Message& message = to.at(to.sent.size());
  to.sent.push_back(&message);
  for (std::size_t i = 0; i < Schedule::rows_of(step); ++i) message.bytes += bytes(schedules_[rank].row_of(step, i));
  const bool remote = layout_.host[rank] != layout_.host[step.peer];
  message.link = &link_(rank, step.peer);
  const double size = static_cast<double>(message.bytes), busy = message.link->busy.at(size);
  const bool was_made = self.reduced != nullptr && self.reduced->region == step.region && step.part_count == 0;
  if (was_made && message.link->in_pieces) {
    // The pass that combines writes to the peer as well: it is written once more, but not read.
    self.now = self.occupy(self.now, busy / 2);
    message.arrives = std::max(self.now + message.link->arrival.at(std::min(size, kPieceBytes)) - busy / 2,
                               self.reduce_began + message.link->arrival.at(size));
  } else {
    message.arrives = self.occupy(self.now, busy) - busy + message.link->arrival.at(size);
  }
  complete(message);
  self.bytes_sent += message.bytes;
  self.messages_sent += 1;
  ranks_[step.peer].bytes_received += message.bytes;
  messages_between_hosts_ += remote ? 1 : 0;
  self.bytes_between_hosts += remote ? message.bytes : 0;
}

void Simulation::receive(int rank, const Step& step) {
  Channel& from = channel(step.peer, rank);
  from.claimed.claim(step.message);
  Message& message = from.at(step.message);
  from.posted.push_back(&message);
  message.posted = ranks_[rank].now;
  complete(message);
}

bool Simulation::reduce(int rank, const Step& step) {
  Rank& self = ranks_[rank];
  const auto sources = schedules_[rank].sources_of(step);
  while (self.claimed.size() < sources.size()) {
    const Source& source = sources[self.claimed.size()];
    Message* message = nullptr;
    if (source.peer != kLocal) {
      Channel& from = channel(source.peer, rank);
      if (from.claimed.first_unclaimed() >= from.sent.size()) return false;
      message = &from.messages[from.claimed.claim_first()];
    }
    self.claimed.push_back(message);
  }
  std::size_t read = 0, longest = 0;
  for (std::size_t i = 0; i < sources.size(); ++i) {
    const std::size_t size = self.claimed[i] ? self.claimed[i]->bytes : bytes(sources[i].region);
    read += size;
    if (self.claimed[i]) longest = std::max(longest, size);
  }
  const double us = model_.reduce.at(static_cast<double>(read));
  const double last = await_claimed(rank);
  self.reduce_began = std::max(self.now, self.free);
  self.now = self.occupy(self.now, us);
  // Behind the last message's arrival its last piece is still to be combined.
  const double piece = longest == 0 ? 1 : std::min(1.0, kPieceBytes / static_cast<double>(longest));
  self.now = self.free = std::max(self.now, last + us * piece);
  self.bytes_reduced += read;
  for (Message* message : self.claimed)
    if (message) message->taken = self.now;
  self.claimed.clear();
  self.reduced = &step;
  return true;
}

// Until every message that the reduce takes has begun to be here. Returns when the last one has arrived. What lies in
// shared memory is combined where it is: the receiver pays for looking at it alone.
double Simulation::await_claimed(int rank) {
  Rank& self = ranks_[rank];
  std::vector<const Message*> messages;
  for (const Message* message : self.claimed)
    if (message) messages.push_back(message);
  std::ranges::sort(messages, {}, [](const Message* message) { return *message->arrives; });
  double last = 0;
  for (const Message* message : messages) {
    const double size = static_cast<double>(message->bytes);
    const auto& [arrival, busy, in_pieces, switch_us] = *message->link;
    const double ready =
        in_pieces ? *message->arrives - arrival.at(size) + arrival.at(std::min(size, kPieceBytes)) : *message->arrives;
    const double cost = busy.at(in_pieces ? 0 : size);
    self.wait_until(ready, turning_us(rank, *message->link));
    self.now = std::max(self.now, self.occupy(ready - cost, cost));
    last = std::max(last, *message->arrives);
  }
  return last;
}

// Ranks that share cores end no sooner than these have done the work of all, and turned from one to the other.
double Simulation::crowded_us(double us) const {
  std::vector<double> work(here_.size());
  for (std::size_t rank = 0; rank < ranks_.size(); ++rank)
    work[layout_.host[rank]] += ranks_[rank].work + ranks_[rank].switching;
  for (std::size_t host = 0; host < work.size(); ++host)
    if (is_crowded(static_cast<int>(host))) us = std::max(us, work[host] / model_.cores);
  return us;
}

Cost Simulation::cost() const {
  Cost cost;
  for (std::size_t rank = 0; rank < ranks_.size(); ++rank) {
    const Rank& self = ranks_[rank];
    if (self.step < schedules_[rank].steps.size())
      throw Error(ErrorCode::invalid_argument,
                  "a schedule that does not run to its end has no price; verify() says why");
    std::size_t row_elements = 0;
    for (std::size_t slice = 0; slice < partition_.slices; ++slice)
      row_elements = std::max(row_elements, partition_.slice(slice).size());
    cost.us = std::max(cost.us, self.now);
    cost.max_bytes_sent = std::max(cost.max_bytes_sent, self.bytes_sent);
    cost.max_bytes_received = std::max(cost.max_bytes_received, self.bytes_received);
    cost.max_bytes_reduced = std::max(cost.max_bytes_reduced, self.bytes_reduced);
    cost.max_bytes_between_hosts = std::max(cost.max_bytes_between_hosts, self.bytes_between_hosts);
    cost.bytes_between_hosts += self.bytes_between_hosts;
    cost.max_messages_sent = std::max(cost.max_messages_sent, self.messages_sent);
    cost.scratch_bytes =
        std::max(cost.scratch_bytes, schedules_[rank].scratch_rows * row_elements * accumulation_bytes_);
  }
  for (const Channel& channel : channels_)
    for (const Message& message : channel.messages) cost.us = std::max(cost.us, message.taken.value_or(0));
  cost.us = crowded_us(cost.us);
  cost.messages_between_hosts = messages_between_hosts_;
  return cost;
}

}  // namespace

Cost price(std::span<const Schedule> schedules, const Layout& layout, std::size_t count, std::size_t element_bytes,
           std::size_t accumulation_bytes, const CostModel& model) {
  return price(schedules, layout, count, element_bytes, accumulation_bytes, model,
               [&](int from, int to) -> const LinkCost& {
                 return layout.host[from] != layout.host[to] ? model.remote : model.local;
               });
}

Cost price(std::span<const Schedule> schedules, const Layout& layout, std::size_t count, std::size_t element_bytes,
           std::size_t accumulation_bytes, const CostModel& model, const LinkBetween& link) {
  Simulation simulation(schedules, layout, count, element_bytes, accumulation_bytes, model, link);
  simulation.run();
  return simulation.cost();
}

}  // namespace tutti::internal
