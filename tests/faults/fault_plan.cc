#include "faults/fault_plan.h"

#include <algorithm>
#include <utility>

#include "faults/dice.h"

namespace tutti::internal {
namespace {

using std::chrono::milliseconds;

std::string name_of(Fault fault) {
  switch (fault) {
    case Fault::kill: return "kill";
    case Fault::kill_forked: return "kill, its child lives on";
    case Fault::stop: return "stop";
    case Fault::pause: return "pause";
  }
  return "?";
}

Fault draw_fault(FaultDice& dice) {
  const int chance = dice.below(100);
  return chance < 50 ? Fault::kill : chance < 70 ? Fault::kill_forked : Fault::stop;
}

}  // namespace

FaultPlan FaultPlan::draw(unsigned seed, const std::string& wire) {
  FaultDice dice(seed);
  FaultPlan plan{.seed = seed, .wire = wire, .ranks = 3 + dice.below(6), .is_without_zero = dice.percent(20)};
  for (int rank = 0; rank < plan.ranks; ++rank) {
    // Rank 0's host is host 0, where the ranks meet; rank 1 is on the other one half of the time.
    plan.hosts.push_back(wire == "hosts" && rank > 0 ? dice.below(2) : 0);
    plan.then.push_back(dice.one_of<std::string>({"stay", "stay", "leave", "exit"}));
  }
  std::vector<int> untouched;
  for (int rank = plan.is_without_zero ? 1 : 0; rank < plan.ranks; ++rank) untouched.push_back(rank);
  const int most = static_cast<int>(untouched.size()) - 1;
  const int blows = std::min(most, dice.one_of<int>({1, 1, 1, 1, 2, 2, 3}));
  int at = 1 + dice.below(150);
  // Rank 0 is the one that matters most: every third first blow is at it.
  if (untouched.front() == 0 && dice.percent(33)) {
    plan.blows.push_back({draw_fault(dice), 0, milliseconds(at)});
    untouched.erase(untouched.begin());
  }
  while (static_cast<int>(plan.blows.size()) < blows) {
    plan.blows.push_back({draw_fault(dice), dice.take(untouched), milliseconds(at)});
    at += dice.percent(50) ? 0 : dice.below(100);
  }
  if (untouched.size() > 1 && dice.percent(20)) {
    const int before = dice.below(150);
    const Blow pause{Fault::pause, dice.take(untouched), milliseconds(std::max(0, at - before))};
    plan.blows.push_back(pause);
  }
  for (const Blow& blow : plan.blows)
    if (blow.fault != Fault::pause) plan.then[static_cast<std::size_t>(blow.rank)] = "stay";  // until it is hit
  std::ranges::stable_sort(plan.blows, {}, &Blow::at);
  return plan;
}

const FaultPlan::Blow* FaultPlan::blow_at(int rank) const {
  const auto found = std::ranges::find(blows, rank, &Blow::rank);
  return found == blows.end() ? nullptr : &*found;
}

bool FaultPlan::hits(int rank) const {
  const Blow* const blow = blow_at(rank);
  return blow != nullptr && blow->fault != Fault::pause;
}

// A death that a child hides is seen by ranks of the same host that are there.
bool FaultPlan::is_heard_by_silence_only() const {
  return std::ranges::any_of(blows, [&](const Blow& blow) {
    if (blow.fault == Fault::stop) return true;
    if (blow.fault != Fault::kill_forked) return false;
    for (int rank = is_without_zero ? 1 : 0; rank < ranks; ++rank)
      if (!hits(rank) && hosts[static_cast<std::size_t>(rank)] == hosts[static_cast<std::size_t>(blow.rank)])
        return false;
    return true;
  });
}

std::string FaultPlan::text() const {
  std::string text = "seed " + std::to_string(seed) + ", " + wire + ", " + std::to_string(ranks) + " ranks";
  if (wire == "hosts") {
    text += " of the hosts ";
    for (const int host : hosts) text += std::to_string(host);
  }
  if (is_without_zero) text += ", rank 0 leaves";
  for (const Blow& blow : blows)
    text += "; " + std::to_string(blow.at.count()) + " ms: " + name_of(blow.fault) + " of rank " +
            std::to_string(blow.rank);
  text += "; then";
  for (const std::string& what : then) text += " " + what;
  return text;
}

}  // namespace tutti::internal
