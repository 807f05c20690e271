#include "tune_rules.h"

#include <algorithm>
#include <set>

#include "candidates.h"
#include "tutti/error.h"

namespace tutti::tools {
namespace {

using runtime::HostCount;
using runtime::Rule;

constexpr std::size_t kLeastBytes = 8, kMostBytes = 32 << 20, kFactor = 4;
constexpr std::size_t kChunks[] = {0, 16 << 10, 128 << 10, 1 << 20};  // first the default
// What predictions are not sure of: for less, the choice of the built-in table stays, or that of the smaller size.
constexpr double kWorthIt = 0.85, kWorthAnotherRule = 0.95;
constexpr double kWorthAnotherOrder = 0.9;

struct Choice {
  Algorithm algorithm = Algorithm::automatic;
  std::size_t chunk_bytes = 0;
  double us = 0;
  friend bool operator==(const Choice& a, const Choice& b) {
    return a.algorithm == b.algorithm && a.chunk_bytes == b.chunk_bytes;
  }
};

// All that the algorithms can offer for one question.
std::vector<Choice> offers(const Question& question, const CostModel& model) {
  std::vector<Choice> all;
  for (const AlgorithmEntry& entry : catalogue()) {
    if (entry.collective != question.collective || !objection_to(entry, question).empty()) continue;
    std::set<int> seen;
    for (const std::size_t chunk_bytes : kChunks) {
      const std::size_t piece = chunk_bytes > 0 ? chunk_bytes : runtime::default_chunk_bytes(entry.algorithm);
      const int chunks = entry.pipelined ? runtime::chunks_of(question.bytes, piece) : 1;
      if (!seen.insert(chunks).second) continue;
      try {
        all.push_back({entry.algorithm, chunk_bytes, price_of(entry, chunks, question, model).us});
      } catch (const Error&) {
        break;  // not for such a layout
      }
      if (!entry.pipelined) break;
    }
  }
  return all;
}

Choice best_of(const Question& question, const CostModel& model, const Choice& before) {
  const std::vector<Choice> all = offers(question, model);
  const auto best = std::ranges::min_element(all, {}, &Choice::us);
  if (best == all.end()) return before;
  const runtime::Chooser built_in(runtime::ChoiceTable::built_in(), question.layout.ranks(), question.layout.hosts());
  const Choice usual{built_in.choose(question.collective, question.bytes, question.order)};
  for (const auto& [other, worth] : {std::pair{usual, kWorthIt}, {before, kWorthAnotherRule}})
    if (const auto same = std::ranges::find(all, other); same != all.end() && best->us > same->us * worth) return *same;
  return *best;
}

// The choices at one size: of calls in canonical order, and of those that allow any.
struct Step {
  std::size_t bytes;
  Choice canonical, any;
  bool same(const Step& other) const { return canonical == other.canonical && any == other.any; }
};

Rule rule_of(Collective collective, HostCount hosts, int max_ranks, std::size_t max_bytes, Order order,
             const Choice& choice) {
  return {collective, max_ranks, hosts, max_bytes, order, choice.algorithm, choice.chunk_bytes};
}

std::vector<Step> steps_for(Question question, const CostModel& model) {
  std::vector<Step> steps;
  const bool sized = question.collective != Collective::barrier;
  for (std::size_t bytes = sized ? kLeastBytes : 0; bytes <= kMostBytes; bytes *= kFactor) {
    question.bytes = bytes;
    Step step{bytes, {}, {}};
    question.order = Order::canonical;
    step.canonical = best_of(question, model, steps.empty() ? Choice{} : steps.back().canonical);
    question.order = Order::any;
    step.any = best_of(question, model, steps.empty() ? Choice{} : steps.back().any);
    if (step.any.us > step.canonical.us * kWorthAnotherOrder) step.any = step.canonical;
    steps.push_back(step);
    if (!sized) break;
  }
  return steps;
}

// A choice holds halfway, in factors, to the next size of the grid; the last for all beyond.
std::vector<Rule> rules_of(const std::vector<Step>& steps, Collective collective, HostCount hosts, int max_ranks) {
  std::vector<Rule> rules;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const Step& step = steps[i];
    const bool last = i + 1 == steps.size();
    if (step.canonical.algorithm == Algorithm::automatic || (!last && steps[i + 1].same(step))) continue;
    const std::size_t bytes = last ? runtime::kAnyBytes : step.bytes * 2;
    if (!(step.any == step.canonical))
      rules.push_back(rule_of(collective, hosts, max_ranks, bytes, Order::any, step.any));
    rules.push_back(rule_of(collective, hosts, max_ranks, bytes, Order::canonical, step.canonical));
  }
  return rules;
}

bool alike(const std::vector<Rule>& a, const std::vector<Rule>& b) {
  return std::ranges::equal(a, b, [](Rule x, const Rule& y) {
    x.max_ranks = y.max_ranks;
    return x == y;
  });
}

}  // namespace

std::vector<Rule> make_rules(const CostModel& model, HostCount hosts, const Grid& grid) {
  std::vector<Rule> all;
  std::vector<Collective> collectives;
  for (const AlgorithmEntry& entry : catalogue())
    if (std::ranges::find(collectives, entry.collective) == collectives.end()) collectives.push_back(entry.collective);
  for (const Collective collective : collectives) {
    std::vector<std::vector<Rule>> by_ranks;
    for (const int ranks : grid.ranks) {
      Question question{.collective = collective, .layout = Layout::of(ranks)};
      if (hosts == HostCount::several)
        for (int rank = 0; rank < ranks; ++rank)
          question.layout.host[static_cast<std::size_t>(rank)] = rank / grid.ranks_per_host;
      // Any order is the canonical one to two ranks, but to no more.
      const int bound = ranks == grid.ranks.back() && ranks > 2 ? runtime::kAnyRanks : ranks;
      auto rules = rules_of(steps_for(question, model), collective, hosts, bound);
      if (!by_ranks.empty() && alike(by_ranks.back(), rules)) by_ranks.pop_back();
      by_ranks.push_back(std::move(rules));
    }
    for (const auto& rules : by_ranks) all.insert(all.end(), rules.begin(), rules.end());
  }
  return all;
}

}  // namespace tutti::tools
