#include "schedule/mutator.h"

#include <algorithm>
#include <utility>

namespace tutti::internal {
namespace {

bool any_step(const Step&) { return true; }
bool is_wait(const Step& step) { return step.kind == StepKind::wait_send || step.kind == StepKind::wait_receive; }
bool is_reduce(const Step& step) { return step.kind == StepKind::reduce; }

}  // namespace

std::string Mutator::mutate(std::vector<Schedule>& schedules) {
  Schedule& schedule = schedules[below(schedules.size())];
  const int ranks = static_cast<int>(schedules.size());
  switch (below(12)) {
    case 0: return drop(schedule, false);
    case 1: return drop(schedule, true);
    case 2: return duplicate(schedule);
    case 3: return reorder(schedule, false);
    case 4: return reorder(schedule, true);
    case 5: return redirect_peer(schedule, ranks);
    case 6: return redirect_region(schedule);
    case 7: return change_wait(schedule);
    case 8: return change_finish(schedule);
    case 9: return drop_source(schedule);
    case 10: return change_message(schedule);
    default: return change_source(schedule, ranks);
  }
}

std::optional<std::size_t> Mutator::pick(const Schedule& schedule, const std::function<bool(const Step&)>& which) {
  std::vector<std::size_t> found;
  for (std::size_t i = 0; i < schedule.steps.size(); ++i)
    if (which(schedule.steps[i])) found.push_back(i);
  if (found.empty()) return std::nullopt;
  return found[below(found.size())];
}

std::string Mutator::drop(Schedule& schedule, bool wait) {
  const auto at = pick(schedule, wait ? is_wait : any_step);
  if (!at) return {};
  schedule.steps.erase(schedule.steps.begin() + *at);
  return wait ? "drop a wait" : "drop a step";
}

std::string Mutator::duplicate(Schedule& schedule) {
  const auto at = pick(schedule, any_step);
  if (!at) return {};
  const Step copy = schedule.steps[*at];
  schedule.steps.insert(schedule.steps.begin() + below(schedule.steps.size() + 1), copy);
  return "duplicate a step";
}

std::string Mutator::reorder(Schedule& schedule, bool neighbours) {
  const auto at = pick(schedule, any_step);
  if (!at) return {};
  const std::size_t other = neighbours ? std::min(*at + 1, schedule.steps.size() - 1) : below(schedule.steps.size());
  std::swap(schedule.steps[*at], schedule.steps[other]);
  return neighbours ? "swap neighbours" : "swap steps";
}

std::string Mutator::redirect_peer(Schedule& schedule, int ranks) {
  const auto at = pick(schedule, [](const Step& step) { return !is_reduce(step); });
  if (!at) return {};
  schedule.steps[*at].peer = static_cast<int>(below(ranks));
  return "redirect to another peer";
}

void Mutator::redirect(const Schedule& schedule, Region& region) {
  switch (below(4)) {
    case 0: region.space = static_cast<Space>(below(4)); break;
    case 1: region.row = static_cast<std::uint16_t>(below(schedule.scratch_rows + 1)); break;
    case 2: region.slice = static_cast<std::uint32_t>(below(schedule.slices)); break;
    default: region.chunk = static_cast<std::uint16_t>(below(schedule.chunks)); break;
  }
}

std::string Mutator::redirect_region(Schedule& schedule) {
  const auto at = pick(schedule, [](const Step& step) { return !is_wait(step); });
  if (!at) return {};
  redirect(schedule, schedule.steps[*at].region);
  return "redirect to another region";
}

std::string Mutator::change_wait(Schedule& schedule) {
  const auto at = pick(schedule, is_wait);
  if (!at) return {};
  schedule.steps[*at].message += one_more_or_less();
  return "wait for one more or less";
}

std::string Mutator::change_message(Schedule& schedule) {
  const auto at = pick(schedule, [](const Step& step) { return step.kind == StepKind::receive; });
  if (!at) return {};
  schedule.steps[*at].message += one_more_or_less();
  return "take the message before or after";
}

std::string Mutator::change_finish(Schedule& schedule) {
  const auto at = pick(schedule, is_reduce);
  if (!at) return {};
  schedule.steps[*at].finish = !schedule.steps[*at].finish;
  return "finish or do not";
}

std::string Mutator::drop_source(Schedule& schedule) {
  const auto at =
      pick(schedule, [](const Step& step) { return step.kind == StepKind::reduce && step.source_count > 1; });
  if (!at) return {};
  Step& step = schedule.steps[*at];
  step.source_count -= 1;
  if (below(2) == 0) step.first_source += 1;
  if (below(2) == 0) schedule.sources[step.first_source + step.source_count - 1].joins += one_more_or_less();
  return "drop a source";
}

std::string Mutator::change_source(Schedule& schedule, int ranks) {
  if (schedule.sources.empty()) return {};
  Source& source = schedule.sources[below(schedule.sources.size())];
  Source& other = schedule.sources[below(schedule.sources.size())];
  switch (below(6)) {
    case 0: source.peer = static_cast<int>(below(ranks + 1)) - 1; return "source from another peer";
    case 1: redirect(schedule, source.region); return "source from another region";
    case 2: source.joins += one_more_or_less(); return "source joins one more or less";
    case 3: source.partial = !source.partial; return "source of another type";
    case 4: std::swap(source, other); return "swap sources";
    default: std::swap(source.region, other.region); return "swap regions of sources";
  }
}

}  // namespace tutti::internal
