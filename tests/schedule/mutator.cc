#include "schedule/mutator.h"

#include <algorithm>
#include <utility>

namespace tutti::internal {
namespace {

bool any_step(const Step&) { return true; }
bool is_wait(const Step& step) { return step.kind == StepKind::wait_send || step.kind == StepKind::wait_receive; }
bool has_rows(const Step& step) {
  return (step.kind == StepKind::send || step.kind == StepKind::receive) && step.part_count > 0;
}
bool is_reduce(const Step& step) { return step.kind == StepKind::reduce; }

}  // namespace

std::string Mutator::mutate(std::vector<Schedule>& schedules) {
  Schedule& schedule = schedules[below(schedules.size())];
  const int ranks = static_cast<int>(schedules.size());
  // One of several rows may be damaged as often in its rows as in all else.
  if (pick(schedule, has_rows) && below(2) == 0) return change_extent(schedule);
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
  const auto at = pick(schedule, [](const Step& step) { return step.kind == StepKind::reduce && step.part_count > 1; });
  if (!at) return {};
  Step& step = schedule.steps[*at];
  step.part_count -= 1;
  if (below(2) == 0) step.first_part += 1;
  if (below(2) == 0) schedule.sources[step.first_part + step.part_count - 1].joins += one_more_or_less();
  return "drop a source";
}

// Too long, too short, shifted, or of other rows.
std::string Mutator::change_extent(Schedule& schedule) {
  Step& step = schedule.steps[*pick(schedule, has_rows)];
  std::vector<std::uint32_t>& slices = schedule.further_slices;
  const auto any_slice = [&] { return static_cast<std::uint32_t>(below(schedule.slices)); };
  const auto copied = [&] {  // so that it can grow
    const std::vector<std::uint32_t> own(slices.begin() + step.first_part,
                                         slices.begin() + step.first_part + step.part_count);
    step.first_part = static_cast<std::uint32_t>(slices.size());
    slices.insert(slices.end(), own.begin(), own.end());
  };
  switch (below(8)) {
    case 0:
      copied();
      slices.push_back(below(2) == 0 ? slices.back() + 1 : any_slice());
      ++step.part_count;
      return "a row too many";
    case 1: --step.part_count; return "a row too few";
    case 2:  // the first is lost
      step.region = schedule.row_of(step, 1);
      ++step.first_part;
      --step.part_count;
      return "begin a row later";
    case 3: step.region.row = static_cast<std::uint16_t>(step.region.row + one_more_or_less()); return "shift the rows";
    case 4: {
      const auto by = static_cast<std::uint32_t>(one_more_or_less());
      step.region.slice += by;
      for (std::size_t i = 0; i < step.part_count; ++i) slices[step.first_part + i] += by;
      return "shift the slices";
    }
    case 5:
      std::swap(slices[step.first_part + below(step.part_count)], slices[step.first_part + below(step.part_count)]);
      return "swap slices of rows";
    case 6: slices[step.first_part + below(step.part_count)] = any_slice(); return "another slice of a row";
    default: step.first_part += static_cast<std::uint32_t>(one_more_or_less()); return "rows of another message";
  }
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
