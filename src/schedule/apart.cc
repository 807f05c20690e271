#include "schedule/apart.h"

#include <map>
#include <utility>

#include "schedule/builder.h"

namespace tutti::internal {
namespace {

// The part of the input, a row of relay for each slice, that takes its place.
class Copies {
 public:
  explicit Copies(Schedule& schedule) : schedule_(schedule) {}

  Region of(const Region& region) {
    if (region.space != Space::input) return region;
    const auto [row, fresh] = rows_.try_emplace(region.slice, schedule_.scratch_rows);
    if (fresh) schedule_.scratch_rows += 1;
    check_scratch_rows(schedule_.scratch_rows);
    const Region copy{Space::relay, static_cast<std::uint16_t>(row->second), region.slice, region.chunk};
    if (copied_.try_emplace(region, copy).second) append(region, copy);
    return copy;
  }

 private:
  void append(const Region& from, const Region& to) {
    const auto source = static_cast<std::uint32_t>(schedule_.sources.size());
    schedule_.sources.push_back({.region = from});
    schedule_.steps.push_back({.kind = StepKind::reduce, .part_count = 1, .region = to, .first_part = source});
  }

  Schedule& schedule_;
  std::map<std::uint32_t, int> rows_;  // by slice
  std::map<Region, Region> copied_;
};

}  // namespace

Schedule with_input_apart(const Schedule& schedule) {
  Schedule apart = schedule;
  apart.steps.clear();
  Copies copies(apart);
  std::vector<Step> steps = schedule.steps;
  for (Step& step : steps)
    if (step.kind == StepKind::send) step.region = copies.of(step.region);
  for (std::size_t i = 0; i < schedule.sources.size(); ++i)
    if (const Region region = schedule.sources[i].region; schedule.sources[i].peer == kLocal)
      apart.sources[i].region = copies.of(region);
  apart.steps.insert(apart.steps.end(), steps.begin(), steps.end());
  return apart;
}

}  // namespace tutti::internal
