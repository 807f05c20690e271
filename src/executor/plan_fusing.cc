#include "executor/plan_fusing.h"

#include <algorithm>

namespace tutti::internal {
namespace {

bool is_wait(const PlanStep& step) { return std::holds_alternative<WaitStep>(step); }

bool is_wait_for_sends(const PlanStep& step) {
  const auto* const wait = std::get_if<WaitStep>(&step);
  return wait != nullptr && wait->for_sends;
}

// Marks the sends right behind `reduce`, as long as each is the first to its peer. Regions without elements are not
// told apart by where they lie.
void mark_pushes(ReduceStep& reduce, std::span<PlanStep> behind, std::span<const PlanSource> sources) {
  const PlanSource& source = sources[reduce.first_source];
  const bool copies =
      reduce.source_count == 1 && !reduce.finish && source.peer == kLocal && source.partial == reduce.partial;
  for (std::size_t i = 0; i < behind.size(); ++i) {
    auto* const send = std::get_if<SendStep>(&behind[i]);
    if (send == nullptr || send->bytes == 0 || send->bytes != reduce.count * reduce.element_bytes) return;
    if (send->from != reduce.to && !(copies && send->from == source.from())) return;
    const bool of_source = send->from != reduce.to;
    if (i > 0 && of_source != reduce.sends_source) return;
    for (const PlanStep& before : behind.first(i))
      if (std::get<SendStep>(before).peer == send->peer) return;
    send->fused = true;
    reduce.sends_source = of_source;
    reduce.read_there = copies && reduce.to.space == Space::scratch && !reduce.sends_source;
    ++reduce.pushes;
  }
}

// Whether the first of `steps` does nothing but finish what `reduce` has left in scratch, for the last time.
bool finishes(std::span<const PlanStep> steps, std::span<const PlanSource> sources, const ReduceStep& reduce) {
  const auto* const step = std::get_if<ReduceStep>(&steps.front());
  if (step == nullptr || !step->finish || step->source_count != 1 || step->count != reduce.count) return false;
  const PlanSource& source = sources[step->first_source];
  if (source.peer != kLocal || source.from() != reduce.to) return false;
  return std::ranges::all_of(steps.subspan(1), is_wait);
}

}  // namespace

void mark_fusible(std::span<PlanStep> steps, std::span<const PlanSource> sources) {
  for (std::size_t i = 0; i < steps.size(); ++i)
    if (auto* const reduce = std::get_if<ReduceStep>(&steps[i])) mark_pushes(*reduce, steps.subspan(i + 1), sources);
}

void mark_finishers(std::span<PlanStep> steps, std::span<const PlanSource> sources) {
  bool lends_inputs = true;  // and nothing else
  for (std::size_t i = 0; i < steps.size(); ++i) {
    if (const auto* const send = std::get_if<SendStep>(&steps[i])) lends_inputs &= send->from.space == Space::input;
    auto* const reduce = std::get_if<ReduceStep>(&steps[i]);
    if (reduce == nullptr || !lends_inputs || !reduce->partial || reduce->finish || reduce->count == 0) continue;
    std::size_t next = i + 1;
    while (next < steps.size() && is_wait_for_sends(steps[next])) ++next;
    if (next < steps.size() && finishes(steps.subspan(next), sources, *reduce))
      reduce->finisher = static_cast<std::uint32_t>(next);
  }
}

}  // namespace tutti::internal
