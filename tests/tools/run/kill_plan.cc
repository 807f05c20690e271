#include "tools/run/kill_plan.h"

#include <algorithm>
#include <csignal>

#include "faults/dice.h"

namespace tutti::internal::tools {
namespace {

using std::chrono::milliseconds;

int draw_signal(FaultDice& dice) { return dice.one_of<int>({SIGKILL, SIGKILL, SIGTERM, SIGINT, SIGHUP}); }

// While the processes begin, which takes less than 0.1 s, things are different every millisecond.
milliseconds draw_time(FaultDice& dice, milliseconds runs) {
  return milliseconds(dice.percent(35) ? dice.below(100) : dice.below(static_cast<int>(runs.count()) + 150));
}

}  // namespace

KillPlan KillPlan::draw(unsigned seed) {
  FaultDice dice(seed);
  KillPlan plan{.seed = seed,
                .ranks = 2 + dice.below(5),
                .nodes = dice.percent(20) ? 2 : 1,
                .wire = dice.one_of<std::string>({"shm", "tcp"}),
                .tags = dice.percent(50),
                .restarts = dice.percent(20) ? 1 : 0,
                .runs = milliseconds(100 + dice.below(900)),
                .children = {},
                .outlet = dice.one_of<Outlet>({Outlet::unread_pipe, Outlet::unread_pipe, Outlet::unread_pipe,
                                               Outlet::abandoned_pipe, Outlet::file}),
                .blows = {}};
  // The nodes of a job that starts again end together; those of another one do not know of each other.
  if (plan.nodes > 1) {
    plan.ranks = std::min(plan.ranks, 3);
    plan.restarts = 1;
  }
  for (int rank = 0; rank < plan.ranks * plan.nodes; ++rank)
    plan.children += dice.percent(60) ? '-' : dice.one_of<char>({'b', 'c', 's'});
  const Victim last = dice.one_of<Victim>({Victim::launcher, Victim::launcher, Victim::launcher, Victim::guardian,
                                           Victim::guardian, Victim::launcher_and_guardian, Victim::group});
  plan.blows.push_back({last, dice.below(plan.nodes), draw_signal(dice), draw_time(dice, plan.runs)});
  for (int more = dice.one_of<int>({0, 0, 1, 1, 2}); more > 0; --more) {
    const Victim victim = dice.one_of<Victim>({Victim::rank, Victim::rank, Victim::launcher, Victim::guardian});
    const milliseconds at = dice.percent(30) ? plan.blows.front().at : draw_time(dice, plan.runs);
    const int signal = victim == Victim::rank && dice.percent(25) ? SIGSTOP : draw_signal(dice);
    plan.blows.push_back({victim, dice.below(plan.ranks * plan.nodes), signal, std::min(at, plan.blows.front().at)});
  }
  std::rotate(plan.blows.begin(), plan.blows.begin() + 1, plan.blows.end());
  std::ranges::stable_sort(plan.blows, {}, &Blow::at);
  return plan;
}

bool KillPlan::is_beyond_promise() const {
  const auto kills = [&](Victim victim) {
    return std::ranges::any_of(blows,
                               [&](const Blow& blow) { return blow.victim == victim && blow.signal == SIGKILL; });
  };
  return kills(Victim::launcher_and_guardian) || kills(Victim::group) ||
         (kills(Victim::launcher) && kills(Victim::guardian));
}

std::string KillPlan::command(const std::string& program, int node) const {
  const std::string hosts = nodes == 1 ? ""
                                       : " --nnodes " + std::to_string(nodes) + " --node-rank " + std::to_string(node) +
                                             " --master-addr 127.0.0.1";
  return "$TUTTI run -n " + std::to_string(ranks) + hosts + (tags ? " --tag" : "") + " --max-restarts " +
         std::to_string(restarts) + " " + program + " " + std::to_string(runs.count()) + " " + children;
}

std::string name_of(const KillPlan::Blow& blow) {
  const auto victim = [&]() -> std::string {
    switch (blow.victim) {
      case Victim::launcher: return "launcher";
      case Victim::guardian: return "guardian";
      case Victim::launcher_and_guardian: return "launcher and guardian";
      case Victim::group: return "group";
      case Victim::rank: return "rank";
    }
    return "?";
  };
  const std::string signal = blow.signal == SIGKILL   ? "KILL"
                             : blow.signal == SIGTERM ? "TERM"
                             : blow.signal == SIGINT  ? "INT"
                             : blow.signal == SIGHUP  ? "HUP"
                                                      : "STOP";
  return signal + " to " + victim();
}

std::string KillPlan::text() const {
  std::string text = "seed " + std::to_string(seed) + ", " + wire + ", " + command("killed_rank", 0) + ", " +
                     (outlet == Outlet::unread_pipe      ? "a pipe that nobody reads"
                      : outlet == Outlet::abandoned_pipe ? "a pipe whose reader is gone"
                                                         : "a file");
  for (const Blow& blow : blows) {
    text += "; " + std::to_string(blow.at.count()) + " ms: " + name_of(blow);
    if (blow.victim == Victim::rank || nodes > 1) text += " " + std::to_string(blow.rank);
  }
  return text;
}

}  // namespace tutti::internal::tools
