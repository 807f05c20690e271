#include "tools/run/kill_plan.h"

#include <algorithm>
#include <csignal>
#include <random>

namespace tutti::internal::tools {
namespace {

using std::chrono::milliseconds;

class Draws {
 public:
  explicit Draws(unsigned seed) : random_(seed) {}
  int below(int limit) { return static_cast<int>(random_() % static_cast<unsigned>(limit)); }
  bool percent(int chance) { return below(100) < chance; }
  template <class T>
  T one_of(const std::vector<T>& list) {
    return list[static_cast<std::size_t>(below(static_cast<int>(list.size())))];
  }

 private:
  std::mt19937 random_;
};

int draw_signal(Draws& draws) { return draws.one_of<int>({SIGKILL, SIGKILL, SIGTERM, SIGINT, SIGHUP}); }

// While the processes begin, which takes less than 0.1 s, things are different every millisecond.
milliseconds draw_time(Draws& draws, milliseconds runs) {
  return milliseconds(draws.percent(35) ? draws.below(100) : draws.below(static_cast<int>(runs.count()) + 150));
}

}  // namespace

KillPlan KillPlan::draw(unsigned seed) {
  Draws draws(seed);
  KillPlan plan{.seed = seed,
                .ranks = 2 + draws.below(5),
                .nodes = draws.percent(20) ? 2 : 1,
                .wire = draws.one_of<std::string>({"shm", "tcp"}),
                .tags = draws.percent(50),
                .restarts = draws.percent(20) ? 1 : 0,
                .runs = milliseconds(100 + draws.below(900)),
                .children = {},
                .outlet = draws.one_of<Outlet>({Outlet::unread_pipe, Outlet::unread_pipe, Outlet::unread_pipe,
                                                Outlet::abandoned_pipe, Outlet::file}),
                .blows = {}};
  // The nodes of a job that starts again end together; those of another one do not know of each other.
  if (plan.nodes > 1) {
    plan.ranks = std::min(plan.ranks, 3);
    plan.restarts = 1;
  }
  for (int rank = 0; rank < plan.ranks * plan.nodes; ++rank)
    plan.children += draws.percent(60) ? '-' : draws.one_of<char>({'b', 'c', 's'});
  const Victim last = draws.one_of<Victim>({Victim::launcher, Victim::launcher, Victim::launcher, Victim::guardian,
                                            Victim::guardian, Victim::launcher_and_guardian, Victim::group});
  plan.blows.push_back({last, draws.below(plan.nodes), draw_signal(draws), draw_time(draws, plan.runs)});
  for (int more = draws.one_of<int>({0, 0, 1, 1, 2}); more > 0; --more) {
    const Victim victim = draws.one_of<Victim>({Victim::rank, Victim::rank, Victim::launcher, Victim::guardian});
    const milliseconds at = draws.percent(30) ? plan.blows.front().at : draw_time(draws, plan.runs);
    const int signal = victim == Victim::rank && draws.percent(25) ? SIGSTOP : draw_signal(draws);
    plan.blows.push_back({victim, draws.below(plan.ranks * plan.nodes), signal, std::min(at, plan.blows.front().at)});
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
