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
  links_ = links;
  workspace_ = &workspace;
  shown_.resize(links.size());
  const std::size_t first = behind_last_send(plan);
  for (std::size_t i = 0; i < plan.steps.size(); ++i) {
    const PlanStep& step = plan.steps[i];
    if (const auto* const send = std::get_if<SendStep>(&step)) {
      out_.push_back(send);
    } else if (const auto* const receive = std::get_if<ReceiveStep>(&step)) {
      in_.push_back({receive->peer, receive->bytes});
      rest_.push_back(&step);
    } else if (const auto* const reduce = std::get_if<ReduceStep>(&step)) {
      i < first ? copies_.push_back(reduce) : rest_.push_back(&step);
      for (const PlanSource& source : plan.sources_of(*reduce))
        if (source.peer != kLocal) in_.push_back({source.peer, reduce->count * source.element_bytes});
      if (reduce->finisher != 0) i = reduce->finisher;  // which is done with this step
    }
  }
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
  for (const SendStep* const send : out_)
    if (!channel(send->peer).prepare_at_once(spaces_.at(send->from), send->bytes, send->copier)) return false;
  for (const ReduceStep* const copy : copies_) combine(*copy);
  for (const SendStep* const send : out_) channel(send->peer).send_at_once(tag, spaces_.at(send->from), send->bytes);
  here_ = 0;
  return true;
}

auto AtOnce::look(const Tag& tag) -> Arrival {
  for (; here_ < in_.size(); ++here_) {
    const auto [peer, bytes] = in_[here_];
    Channel& from = channel(peer);
    const std::byte* shown = from.look_at_once(tag, bytes);
    if (shown == nullptr) {
      Tag other;
      if (!from.unclaimed(other)) return Arrival::awaited;
      shown = from.look_at_once(tag, bytes);  // it may have come in between
      if (shown == nullptr) return Arrival::never;
    }
    shown_[static_cast<std::size_t>(peer)] = shown;
  }
  return Arrival::whole;
}

void AtOnce::finish() {
  for (const PlanStep* const step : rest_) {
    if (const auto* const receive = std::get_if<ReceiveStep>(step)) {
      take(receive->peer, spaces_.at(receive->to));
      continue;
    }
    const auto& reduce = known<ReduceStep>(*step);
    combine(reduce);
    for (const PlanSource& source : plan_->sources_of(reduce))
      if (source.peer != kLocal) take(source.peer, nullptr);
  }
  for (const SendStep* const send : out_) ++links_[static_cast<std::size_t>(send->peer)].sent;
}

// Each message is received once, or is a source of one reduction: so it is not needed any more.
void AtOnce::take(std::int32_t peer, std::byte* to) {
  channel(peer).take_at_once(to);
  ++links_[static_cast<std::size_t>(peer)].taken;
}

// Nothing is lent, so a result that has a finisher is finished in the same pass.
void AtOnce::combine(const ReduceStep& step) {
  const bool finishes = step.finisher != 0;
  const ReduceStep& to = finishes ? known<ReduceStep>(plan_->steps[step.finisher]) : step;
  const PlanSource* const sources = &plan_->sources[step.first_source];
  const bool is_local_copy = step.source_count == 1 && !to.finish && sources[0].peer == kLocal;
  if (step.count == 0 || (is_local_copy && spaces_.at(sources[0].from()) == spaces_.at(to.to))) return;
  for (std::size_t i = 0; i < step.source_count; ++i) {
    const PlanSource& source = sources[i];
    const std::byte* const data =
        source.peer == kLocal ? spaces_.at(source.from()) : shown_[static_cast<std::size_t>(source.peer)];
    workspace_->sources[i] = {.data = data, .joins = source.joins, .partial = source.partial};
  }
  workspace_->targets[0] = {spaces_.at(to.to), to.partial};
  const FloatEnvironment environment;
  plan_->reductions[step.reduction + (finishes ? 1 : 0)].run({workspace_->sources.data(), step.source_count},
                                                             {workspace_->targets.data(), 1}, step.count, false);
}

}  // namespace tutti::internal
