#include "executor/plan_mutator.h"

#include <algorithm>
#include <utility>

namespace tutti::internal {
namespace {

// How many of the steps behind `at` are sends.
std::size_t sends_behind(const Plan& plan, std::size_t at) {
  std::size_t sends = 0;
  while (at + 1 + sends < plan.steps.size() && std::holds_alternative<SendStep>(plan.steps[at + 1 + sends])) ++sends;
  return sends;
}

void push(Plan& plan, std::size_t at, std::size_t pushes) {
  auto& reduce = std::get<ReduceStep>(plan.steps[at]);
  reduce.pushes = static_cast<std::uint32_t>(pushes);
  plan.most_pushes = std::max(plan.most_pushes, pushes);
  for (std::size_t i = 0; i < pushes; ++i) std::get<SendStep>(plan.steps[at + 1 + i]).fused = true;
}

Place* place_of(PlanStep& step) {
  if (auto* const send = std::get_if<SendStep>(&step)) return &send->from;
  if (auto* const receive = std::get_if<ReceiveStep>(&step)) return &receive->to;
  if (auto* const reduce = std::get_if<ReduceStep>(&step)) return &reduce->to;
  return nullptr;
}

}  // namespace

std::string PlanMutator::change_fusing(Plan& plan) {
  switch (below(6)) {
    case 0: return push_more(plan);
    case 1: return push_less(plan);
    case 2: return push_from_elsewhere(plan);
    case 3: return flip_fused(plan);
    default: return finish_elsewhere(plan);
  }
}

std::string PlanMutator::change_memory(Plan& plan) {
  switch (below(6)) {
    case 0: return resize(plan);
    case 1: return swap_reductions(plan);
    case 2: return miscount(plan);
    case 3: return resize_message(plan);
    default: return move_place(plan);
  }
}

template <class Kind, class Takes>
std::optional<std::size_t> PlanMutator::pick(const Plan& plan, Takes takes) {
  std::vector<std::size_t> found;
  for (std::size_t i = 0; i < plan.steps.size(); ++i)
    if (const auto* const step = std::get_if<Kind>(&plan.steps[i]); step != nullptr && takes(*step, i))
      found.push_back(i);
  if (found.empty()) return std::nullopt;
  return found[below(found.size())];
}

// To one send too many: of another region, or the second to its peer.
std::string PlanMutator::push_more(Plan& plan) {
  const auto at = pick<ReduceStep>(
      plan, [&](const ReduceStep& reduce, std::size_t i) { return reduce.pushes < sends_behind(plan, i); });
  if (!at) return {};
  const std::size_t now = std::get<ReduceStep>(plan.steps[*at]).pushes;
  push(plan, *at, now + 1 + below(sends_behind(plan, *at) - now));
  return "push more";
}

// The last send still believes that it may have been done.
std::string PlanMutator::push_less(Plan& plan) {
  const auto at = pick<ReduceStep>(plan, [](const ReduceStep& reduce, std::size_t) { return reduce.pushes > 0; });
  if (!at) return {};
  auto& reduce = std::get<ReduceStep>(plan.steps[*at]);
  auto& last = std::get<SendStep>(plan.steps[*at + reduce.pushes]);
  --reduce.pushes;
  last.fused = below(2) == 0;
  return last.fused ? "push less" : "push less, and send";
}

// The reduce that makes what is sent is taken for a copy of something else, or writes elsewhere.
std::string PlanMutator::push_from_elsewhere(Plan& plan) {
  const auto at = pick<ReduceStep>(plan, [](const ReduceStep& reduce, std::size_t) { return reduce.pushes > 0; });
  if (!at) return {};
  auto& reduce = std::get<ReduceStep>(plan.steps[*at]);
  if (below(4) == 0) {
    reduce.sends_source = !reduce.sends_source;
    return "flip sends_source";
  }
  const auto other = pick<SendStep>(plan);
  auto& send = std::get<SendStep>(plan.steps[*at + 1 + below(reduce.pushes)]);
  if (below(2) == 0) {
    std::swap(send.from, std::get<SendStep>(plan.steps[*other]).from);
    return "swap what is sent";
  }
  std::swap(send.peer, std::get<SendStep>(plan.steps[*other]).peer);
  return "swap peers";
}

std::string PlanMutator::flip_fused(Plan& plan) {
  const auto at = pick<SendStep>(plan);
  if (!at) return {};
  auto& send = std::get<SendStep>(plan.steps[*at]);
  send.fused = !send.fused;
  return send.fused ? "fuse a send" : "send what is pushed";
}

std::string PlanMutator::finish_elsewhere(Plan& plan) {
  const auto at = pick<ReduceStep>(plan);
  if (!at) return {};
  const auto other = pick<ReduceStep>(plan, [&](const ReduceStep&, std::size_t i) { return i > *at; });
  if (!other) return {};
  auto& reduce = std::get<ReduceStep>(plan.steps[*at]);
  if (reduce.finisher == *other) {
    reduce.finisher = 0;
    return "do not jump";
  }
  const bool had = reduce.finisher != 0;
  reduce.finisher = static_cast<std::uint32_t>(*other);
  if (had) return "jump elsewhere";
  std::vector<ReduceSource> shape;
  for (const PlanSource& source : plan.sources_of(reduce))
    shape.push_back({.joins = source.joins, .partial = source.partial});
  ReduceSpec spec{.dtype = plan.call.dtype, .op = plan.call.op, .finish = reduce.finish, .leaves = leaves_};
  reduce.reduction = static_cast<std::uint32_t>(plan.reductions.size());
  plan.reductions.emplace_back(spec, shape);
  spec.finish = true;
  plan.reductions.emplace_back(spec, shape);
  return "jump";
}

// Things lie where others of the plan do.
std::string PlanMutator::move_place(Plan& plan) {
  std::vector<Place*> places;
  for (PlanStep& step : plan.steps)
    if (Place* const place = place_of(step)) places.push_back(place);
  if (places.empty()) return {};
  *places[below(places.size())] = *places[below(places.size())];
  return "move a place";
}

std::string PlanMutator::resize(Plan& plan) {
  const auto at = pick<ReduceStep>(plan);
  if (!at) return {};
  auto& reduce = std::get<ReduceStep>(plan.steps[*at]);
  if (reduce.count == 0) return {};
  below(2) == 0 ? --reduce.count : ++reduce.count;
  return "combine one element more or less";
}

// By an element, or to another message's length: as many rows more or less.
std::string PlanMutator::resize_message(Plan& plan) {
  std::vector<std::size_t*> lengths;
  for (PlanStep& step : plan.steps) {
    if (auto* const send = std::get_if<SendStep>(&step)) lengths.push_back(&send->bytes);
    if (auto* const receive = std::get_if<ReceiveStep>(&step)) lengths.push_back(&receive->bytes);
  }
  if (lengths.empty()) return {};
  std::size_t& bytes = *lengths[below(lengths.size())];
  const std::size_t element = size_of(plan.call.dtype);
  if (below(2) == 0) {
    bytes = *lengths[below(lengths.size())];
    return "a message as long as another";
  }
  bytes = below(2) == 0 && bytes > 0 ? bytes - element : bytes + element;
  return "a message of an element more or less";
}

std::string PlanMutator::swap_reductions(Plan& plan) {
  const auto at = pick<ReduceStep>(plan);
  if (!at) return {};
  auto& reduce = std::get<ReduceStep>(plan.steps[*at]);
  const auto other = pick<ReduceStep>(plan, [&](const ReduceStep& step, std::size_t) {
    // A step with a finisher has a second reduction behind its own. Without one, that would be of another step's
    // sources.
    return step.source_count == reduce.source_count && step.reduction != reduce.reduction &&
           (reduce.finisher == 0 || step.finisher != 0);
  });
  if (!other) return {};
  reduce.reduction = std::get<ReduceStep>(plan.steps[*other]).reduction;
  return "take another reduction";
}

std::string PlanMutator::miscount(Plan& plan) {
  if (plan.peers.empty()) return {};
  if (below(3) == 0) {
    std::uint32_t& lends = plan.traffic[below(plan.traffic.size())].lends;
    if (lends == 0) return {};
    --lends;
    return "end before a message is back";
  }
  Traffic& traffic = plan.traffic[below(plan.traffic.size())];
  ++(below(2) == 0 ? traffic.sends : traffic.receives);
  return "wait for a message too many";
}

}  // namespace tutti::internal
