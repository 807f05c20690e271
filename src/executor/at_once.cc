#include "executor/at_once.h"

#include <algorithm>

#include "reduce/float_environment.h"

namespace tutti::internal {

namespace {

bool is_local(const Plan& plan, const ReduceStep& step) {
  return std::ranges::all_of(plan.sources_of(step), [](const PlanSource& source) { return source.peer == kLocal; });
}

std::size_t behind_last_send(const Plan& plan) {
  std::size_t behind = 0;
  for (std::size_t i = 0; i < plan.steps.size(); ++i)
    if (std::holds_alternative<SendStep>(plan.steps[i])) behind = i + 1;
  return behind;
}

}  // namespace

AtOnce::AtOnce(const Plan& plan, std::span<PeerLink> links, Workspace& workspace) {
  if (!suits(plan, links)) return;
  plan_ = &plan;
  workspace_ = &workspace;
  shown_.resize(links.size());
  const auto await = [&](std::int32_t peer, std::size_t bytes, bool fetches_to_write) {
    in_.push_back({&links[static_cast<std::size_t>(peer)], peer, bytes, fetches_to_write});
  };
  const std::size_t first = behind_last_send(plan);
  for (std::size_t i = 0; i < plan.steps.size(); ++i) {
    const PlanStep& step = plan.steps[i];
    if (const auto* const send = std::get_if<SendStep>(&step)) {
      out_.push_back({&links[static_cast<std::size_t>(send->peer)], send->from, send->bytes, send->copier});
    } else if (const auto* const receive = std::get_if<ReceiveStep>(&step)) {
      await(receive->peer, receive->bytes, receive->hints.fetches_to_write);
      rest_.push_back({.messages = 1, .to = receive->to});
    } else if (const auto* const reduce = std::get_if<ReduceStep>(&step)) {
      (i < first ? copies_ : rest_).push_back(task_of(*reduce));
      for (const PlanSource& source : plan.sources_of(*reduce))
        if (source.peer != kLocal) await(source.peer, reduce->count * source.element_bytes, reduce->fetches_to_write);
      if (reduce->finisher != 0) i = reduce->finisher;  // which is done with this step
    }
  }
}

auto AtOnce::task_of(const ReduceStep& step) const -> Task {
  const bool finishes = step.finisher != 0;
  const ReduceStep& last = finishes ? known<ReduceStep>(plan_->steps[step.finisher]) : step;
  Task task{.reduction = &plan_->reductions[step.reduction + (finishes ? 1 : 0)],
            .sources = plan_->sources_of(step),
            .count = step.count,
            .is_partial = last.partial,
            .to = last.to};
  for (const PlanSource& source : task.sources) task.messages += source.peer != kLocal ? 1 : 0;
  task.is_local_copy = task.sources.size() == 1 && task.messages == 0 && !last.finish;
  if (task.is_local_copy) task.from = task.sources[0].from();
  return task;
}

// One round: what is sent does not depend on what comes. A short message each way at most.
bool AtOnce::suits(const Plan& plan, std::span<const PeerLink> links) {
  if (!plan.has_bytes() || plan.parts != 1 || plan.peers.empty()) return false;
  if (plan.leaves_copies) return false;                                            // they are lent
  if (plan.call.op == Op::custom || plan.call.op == Op::premul_sum) return false;  // which take more than the plan
  for (const Traffic& traffic : plan.traffic)
    if (traffic.sends > 1 || traffic.arrivals > 1) return false;
  const auto is_short = [&](int peer, std::size_t bytes) {
    return links[static_cast<std::size_t>(peer)].channel->most_at_once() >= bytes;
  };
  const std::size_t first = behind_last_send(plan);
  bool sends = false;
  for (std::size_t i = 0; i < plan.steps.size(); ++i) {
    if (const auto* const send = std::get_if<SendStep>(&plan.steps[i])) {
      sends = true;
      if (!is_short(send->peer, send->bytes)) return false;
    } else if (const auto* const receive = std::get_if<ReceiveStep>(&plan.steps[i])) {
      if (!is_short(receive->peer, receive->bytes)) return false;
    } else if (const auto* const reduce = std::get_if<ReduceStep>(&plan.steps[i])) {
      // Before the sends only copies, which an Operation that takes over may make once more; and all of them before all
      // sends, as send() has it. The finisher of what is made there may come behind a send.
      const bool is_copy = is_local(plan, *reduce) && reduce->source_count == 1 && !reduce->finish;
      if (i < first && (!is_copy || sends || reduce->finisher != 0)) return false;
      for (const PlanSource& source : plan.sources_of(*reduce))
        if (source.peer != kLocal && !is_short(source.peer, reduce->count * source.element_bytes)) return false;
    } else if (i < first && !known<WaitStep>(plan.steps[i]).for_sends) {
      return false;
    }
  }
  return true;
}

bool AtOnce::send(const Tag& tag, const std::byte* input, std::byte* output) {
  spaces_ = Spaces(input, output, workspace_->scratch.begin(*plan_));
  for (const Outgoing& message : out_)
    if (!message.link->channel->prepare_at_once(spaces_.at(message.from), message.bytes, message.copier)) return false;
  for (const Task& copy : copies_) combine(copy);
  for (const Outgoing& message : out_)
    message.link->channel->send_at_once(tag, spaces_.at(message.from), message.bytes);
  next_ = in_.begin();
  return true;
}

auto AtOnce::look_further(const Tag& tag) -> Arrival {
  for (; next_ != in_.end(); ++next_) {
    const auto& [link, peer, bytes, fetches_to_write] = *next_;
    Channel& from = *link->channel;
    const std::byte* shown = from.look_at_once(tag, bytes);
    if (shown == nullptr) {
      Tag other;
      if (!from.unclaimed(other)) return Arrival::awaited;
      shown = from.look_at_once(tag, bytes);  // it may have come in between
      if (shown == nullptr) return Arrival::never;
    }
    shown_[static_cast<std::size_t>(peer)] = {shown, fetches_to_write && from.will_rewrite()};
  }
  return Arrival::whole;
}

// Each message has one use, so it is taken right behind it.
void AtOnce::finish() {
  auto message = in_.begin();
  for (const Task& task : rest_) {
    const bool combines = task.reduction != nullptr;
    if (combines) combine(task);
    for (const auto end = message + static_cast<std::ptrdiff_t>(task.messages); message != end; ++message) {
      message->link->channel->take_at_once(combines ? nullptr : spaces_.at(task.to), message->fetches_to_write);
      ++message->link->taken;
    }
  }
  for (const Outgoing& sent : out_) ++sent.link->sent;
}

inline void AtOnce::combine(const Task& task) {
  const bool is_there = task.is_local_copy && spaces_.at(task.from) == spaces_.at(task.to);
  if (task.count > 0 && !is_there) reduce(task);
}

void AtOnce::reduce(const Task& task) {
  for (std::size_t i = 0; i < task.sources.size(); ++i) {
    const PlanSource& source = task.sources[i];
    const auto [data, fetches_to_write] =
        source.peer == kLocal ? Shown{spaces_.at(source.from())} : shown_[static_cast<std::size_t>(source.peer)];
    workspace_->sources[i] = {data, source.joins, source.partial, fetches_to_write};
  }
  workspace_->targets[0] = {spaces_.at(task.to), task.is_partial};
  const FloatEnvironment environment;
  task.reduction->run({workspace_->sources.data(), task.sources.size()}, {workspace_->targets.data(), 1}, task.count,
                      false);
}

}  // namespace tutti::internal
