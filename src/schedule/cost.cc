#include "schedule/cost.h"

#include <algorithm>
#include <deque>
#include <optional>

#include "schedule/claimed_messages.h"
#include "schedule/partition.h"
#include "tutti/error.h"

namespace tutti {
namespace {

struct Message {
  std::size_t bytes = 0;
  std::optional<double> arrives, posted, taken;  // us
};

struct Channel {
  std::deque<Message> messages;
  std::vector<Message*> sent, posted;
  ClaimedMessages claimed;
  Message& at(std::size_t number) {
    while (messages.size() <= number) messages.emplace_back();
    return messages[number];
  }
};

struct Rank {
  std::size_t step = 0;
  double now = 0, link_free = 0;
  std::vector<Message*> claimed;  // the messages of the reduce it stands at
  std::size_t bytes_sent = 0, bytes_received = 0, bytes_between_hosts = 0;
  int messages_sent = 0;
};

// Every rank runs its steps as soon as it can: a discrete simulation without a queue of events, as matching is by order
// alone.
class Simulation {
 public:
  Simulation(std::span<const Schedule> schedules, const Layout& layout, std::size_t count, std::size_t element_bytes,
             std::size_t accumulation_bytes, const CostModel& model)
      : schedules_(schedules),
        layout_(layout),
        model_(model),
        element_bytes_(element_bytes),
        accumulation_bytes_(accumulation_bytes),
        ranks_(schedules.size()),
        channels_(schedules.size() * schedules.size()) {
    partition_.count = count;
    partition_.slices = schedules.empty() ? 1 : schedules[0].slices;
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
  }

  Cost cost() const;

 private:
  bool advance(int rank) {
    const Step& step = schedules_[rank].steps[ranks_[rank].step];
    switch (step.kind) {
      case StepKind::send: send(rank, step); return true;
      case StepKind::receive: receive(rank, step); return true;
      case StepKind::reduce: return reduce(rank, step);
      case StepKind::wait_send: return wait(rank, channel(rank, step.peer).sent, step.message);
      case StepKind::wait_receive: return wait(rank, channel(step.peer, rank).posted, step.message);
    }
    return false;
  }

  void send(int rank, const Step& step);
  void receive(int rank, const Step& step);
  bool reduce(int rank, const Step& step);

  bool wait(int rank, const std::vector<Message*>& lent, std::size_t count) {
    const std::span awaited = std::span(lent).first(std::min(count, lent.size()));
    if (awaited.size() < count ||
        !std::ranges::all_of(awaited, [](const Message* message) { return message->taken.has_value(); }))
      return false;
    for (const Message* message : awaited) ranks_[rank].now = std::max(ranks_[rank].now, *message->taken);
    return true;
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
  std::size_t element_bytes_, accumulation_bytes_;
  Partition partition_;
  std::vector<Rank> ranks_;
  std::vector<Channel> channels_;
};

void Simulation::send(int rank, const Step& step) {
  Rank& self = ranks_[rank];
  Channel& to = channel(rank, step.peer);
  Message& message = to.at(to.sent.size());
  to.sent.push_back(&message);
  message.bytes = bytes(step.region);
  const bool remote = layout_.host[rank] != layout_.host[step.peer];
  const double busy =
      (remote ? model_.remote_alpha_us : model_.alpha_us) +
      static_cast<double>(message.bytes) * (remote ? model_.remote_beta_us_per_byte : model_.beta_us_per_byte);
  self.link_free = std::max(self.now, self.link_free) + busy;
  message.arrives = self.link_free;
  complete(message);
  self.bytes_sent += message.bytes;
  if (remote) self.bytes_between_hosts += message.bytes;
  self.messages_sent += 1;
  ranks_[step.peer].bytes_received += message.bytes;
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
  std::size_t read = 0;
  for (std::size_t i = 0; i < sources.size(); ++i) {
    read += self.claimed[i] ? self.claimed[i]->bytes : bytes(sources[i].region);
    if (self.claimed[i]) self.now = std::max(self.now, *self.claimed[i]->arrives);
  }
  self.now += static_cast<double>(read) * model_.gamma_us_per_byte;
  for (Message* message : self.claimed)
    if (message) message->taken = self.now;
  self.claimed.clear();
  return true;
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
    cost.max_bytes_between_hosts = std::max(cost.max_bytes_between_hosts, self.bytes_between_hosts);
    cost.bytes_between_hosts += self.bytes_between_hosts;
    cost.max_messages_sent = std::max(cost.max_messages_sent, self.messages_sent);
    cost.scratch_bytes =
        std::max(cost.scratch_bytes, schedules_[rank].scratch_rows * row_elements * accumulation_bytes_);
  }
  for (const Channel& channel : channels_)
    for (const Message& message : channel.messages) cost.us = std::max(cost.us, message.taken.value_or(0));
  return cost;
}

}  // namespace

Cost price(std::span<const Schedule> schedules, const Layout& layout, std::size_t count, std::size_t element_bytes,
           std::size_t accumulation_bytes, const CostModel& model) {
  Simulation simulation(schedules, layout, count, element_bytes, accumulation_bytes, model);
  simulation.run();
  return simulation.cost();
}

}  // namespace tutti
