#include "status/verdict.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <set>

namespace tutti::internal::tools {
namespace {

constexpr std::int64_t kWorthNamingUs = 100'000;

struct Edge {
  int from, to;
  const CommunicatorReport* communicator;  // of `from`
};

std::string ranks_in_words(const std::set<int>& ranks) {
  return fmt::format("rank{} {}", ranks.size() == 1 ? "" : "s", fmt::join(ranks, ", "));
}

std::string in_words(const Edge& edge) {
  return fmt::format("rank {} waits for rank {} in {} of {}", edge.from, edge.to, edge.communicator->last->name(),
                     edge.communicator->name);
}

// Else others would be blamed for what it waits for.
std::string whom_it_waits_for(const CommunicatorReport& there) {
  if (!there.waits_for) return "waits for nobody";
  return fmt::format("has waited for rank {} for less than 0.1 s", there.waits_for->rank);
}

// The rank that `edge` leads to waits for nobody, or only for a moment: what of it?
std::string blame(const RankReport* straggler, const Edge& edge) {
  const std::string who = fmt::format("Rank {}", edge.to);
  const CallReport& call = *edge.communicator->last;
  if (straggler == nullptr)
    return fmt::format("{} says nothing: it is on another host, has left, or its process is gone", who);
  if (!straggler->why_none.empty()) return fmt::format("{} does not answer: {}", who, straggler->why_none);
  const CommunicatorReport* const there = straggler->find(edge.communicator->id);
  if (there == nullptr)
    return fmt::format("{} has not entered {}: it has no communicator {}", who, call.name(), edge.communicator->name);
  if (!there->error_text.empty()) return fmt::format("{} says that {} has failed", who, there->name);
  if (!there->last || there->last->number < call.number) {
    const std::string before =
        !there->last          ? "it has made no call yet"
        : there->is_in_call() ? fmt::format("it is in {} and {} there", there->last->name(), whom_it_waits_for(*there))
                              : fmt::format("it completed {} {} ago", there->last->name(),
                                            age(straggler->time_us - *there->last->end_us));
    return fmt::format("{} has not entered {}: {}", who, call.name(), before);
  }
  if (there->last->number == call.number && there->is_in_call())
    return fmt::format("{} is in {} too and {}{}", who, call.name(), whom_it_waits_for(*there),
                       there->waits_for ? ""
                                        : ": it computes, waits for a device, or started the call and does not look "
                                          "after it");
  return fmt::format("{} has completed {}: what it sent should come at any moment", who, call.name());
}

struct Blamed {
  Edge edge;
  std::set<int> waiting{};
};

std::string sentence(const Blamed& blamed, const RankReport* straggler) {
  return fmt::format("{}. Waiting for it, in {}: {}.\n", blame(straggler, blamed.edge), blamed.edge.communicator->name,
                     ranks_in_words(blamed.waiting));
}

}  // namespace

std::string age(std::int64_t us) {
  const double seconds = static_cast<double>(std::max<std::int64_t>(us, 0)) / 1e6;
  return seconds < 100 ? fmt::format("{:.1f} s", seconds) : fmt::format("{:.0f} min", seconds / 60);
}

std::string verdict_on(const std::vector<RankReport>& reports) {
  std::map<int, const RankReport*> by_rank;
  std::map<int, Edge> long_wait, short_wait;  // of each rank the longest one; nobody is blamed for a short one
  for (const RankReport& report : reports) {
    by_rank[report.rank] = &report;
    std::optional<Edge> wait;
    std::int64_t longest = 0;
    for (const CommunicatorReport& communicator : report.communicators) {
      if (!communicator.waits_for || !communicator.is_in_call() || !communicator.error_text.empty()) continue;
      const std::int64_t waited = report.time_us - communicator.waits_for->since_us;
      if (waited < longest) continue;
      longest = waited;
      wait = Edge{report.rank, communicator.waits_for->rank, &communicator};
    }
    if (wait) (longest < kWorthNamingUs ? short_wait : long_wait).insert_or_assign(report.rank, *wait);
  }
  std::map<int, Blamed> blamed;
  std::map<std::set<int>, std::vector<Edge>> cycles;
  for (const auto& [rank, wait] : long_wait) {
    std::vector<Edge> way;
    const auto is_on_way = [&](int at) { return std::ranges::find(way, at, &Edge::from); };
    int at = rank;
    while (long_wait.contains(at) && is_on_way(at) == way.end()) {
      way.push_back(long_wait.at(at));
      at = way.back().to;
    }
    if (const auto begin = is_on_way(at); begin != way.end()) {
      const std::vector<Edge> cycle(begin, way.end());
      std::set<int> members;
      for (const Edge& edge : cycle) members.insert(edge.from);
      cycles.try_emplace(members, cycle);
    } else {
      blamed.try_emplace(at, Blamed{way.back()}).first->second.waiting.insert(rank);
    }
  }
  for (const auto& [rank, wait] : short_wait) {
    const auto same = blamed.find(wait.to);
    if (same != blamed.end() && same->second.edge.communicator->id == wait.communicator->id)
      same->second.waiting.insert(rank);
  }
  if (long_wait.empty()) return "No rank has waited for another one for longer than 0.1 s.\n";
  std::vector<const Blamed*> most;
  for (const auto& [rank, one] : blamed) most.push_back(&one);
  std::ranges::stable_sort(most, std::greater(), [](const Blamed* one) { return one->waiting.size(); });
  std::string text;
  for (const auto& [members, cycle] : cycles) {
    text += fmt::format("A cycle: {}", in_words(cycle.front()));
    for (std::size_t i = 1; i < cycle.size(); ++i) text += fmt::format("; {}", in_words(cycle[i]));
    text += ".\n";
  }
  for (const Blamed* const one : most) {
    const auto straggler = by_rank.find(one->edge.to);
    text += sentence(*one, straggler == by_rank.end() ? nullptr : straggler->second);
  }
  return text;
}

}  // namespace tutti::internal::tools
