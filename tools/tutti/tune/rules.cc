#include "tune/rules.h"

#include <algorithm>
#include <map>
#include <set>

#include "plan/candidates.h"
#include "tutti/error.h"
#include "types/collective.h"

namespace tutti::internal::tools {
namespace {

using internal::HostCount;
using internal::Rule;

constexpr std::size_t kMinBytes = 8, kMaxTunedBytes = 32 << 20, kFactor = 4;
constexpr std::size_t kChunks[] = {0, 16 << 10, 1 << 20};  // first the default
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

// The prices of one collective among some ranks. Schedules serve every size: each is built once.
class Market {
 public:
  Market(const Question& question, const CostModel& model)
      : question_(question),
        model_(model),
        built_in_(internal::ChoiceTable::built_in(), question.layout.ranks(), question.layout.hosts()) {}

  // All that the algorithms can offer at a size, whatever order they keep.
  std::vector<Choice> offers(std::size_t bytes) {
    std::vector<Choice> all;
    for (const AlgorithmEntry& entry : catalogue()) {
      if (entry.collective != question_.collective) continue;
      std::set<int> seen;
      for (const std::size_t chunk_bytes : kChunks) {
        const std::size_t piece = chunk_bytes > 0 ? chunk_bytes
                                                  : internal::default_chunk_bytes(
                                                        entry.collective, entry.algorithm,
                                                        {bytes, question_.layout.ranks(), question_.layout.hosts()});
        const int chunks = entry.pipelined ? internal::chunks_of(bytes, piece) : 1;
        if (!seen.insert(chunks).second) continue;
        const auto& schedules = schedules_of(entry, chunks);
        if (schedules.empty()) break;  // not for such a layout
        const std::size_t element = sizeof(float);
        all.push_back({entry.algorithm, chunk_bytes,
                       price(schedules, question_.layout, bytes / element, element, element, model_).us});
      }
    }
    return all;
  }

  // Of those that a call of that order may have.
  Choice best_of(std::vector<Choice> all, std::size_t bytes, Order order, const Choice& before) const {
    Question question = question_;
    question.order = order;
    std::erase_if(all, [&](const Choice& choice) {
      return !objection_to(*find_algorithm(question.collective, choice.algorithm), question).empty();
    });
    const auto best = std::ranges::min_element(all, {}, &Choice::us);
    if (best == all.end()) return before;
    const Choice usual{built_in_.choose(question.collective, bytes, order)};
    for (const auto& [other, worth] : {std::pair{usual, kWorthIt}, {before, kWorthAnotherRule}})
      if (const auto same = std::ranges::find(all, other); same != all.end() && best->us > same->us * worth)
        return *same;
    return *best;
  }

 private:
  const std::vector<Schedule>& schedules_of(const AlgorithmEntry& entry, int chunks) {
    const auto [found, fresh] = schedules_.try_emplace({&entry, chunks});
    if (fresh) try {
        found->second = build_all(entry, question_.layout, {.chunks = chunks});
      } catch (const Error&) {
      }
    return found->second;
  }

  const Question& question_;
  const CostModel& model_;
  const internal::Chooser built_in_;
  std::map<std::pair<const AlgorithmEntry*, int>, std::vector<Schedule>> schedules_;
};

// The choices at one size: of calls in canonical order, and of those that allow any.
struct Step {
  std::size_t bytes = 0;
  Choice canonical, any;
  bool same(const Step& other) const { return canonical == other.canonical && any == other.any; }
};

Rule rule_of(Collective collective, HostCount hosts, int max_ranks, std::size_t max_bytes, Order order,
             const Choice& choice) {
  return {collective, max_ranks, hosts, max_bytes, order, choice.algorithm, choice.chunk_bytes};
}

std::vector<Step> steps_for(const Question& question, const CostModel& model) {
  Market market(question, model);
  std::vector<Step> steps;
  const bool sized = traits_of(question.collective).has_bytes();
  for (std::size_t bytes = sized ? kMinBytes : 0; bytes <= kMaxTunedBytes; bytes *= kFactor) {
    const std::vector<Choice> all = market.offers(bytes);
    const Step before = steps.empty() ? Step{} : steps.back();
    Step step{bytes, market.best_of(all, bytes, Order::canonical, before.canonical),
              market.best_of(all, bytes, Order::any, before.any)};
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
    const std::size_t bytes = last ? internal::kAnyBytes : step.bytes * 2;
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
      const int bound = ranks == grid.ranks.back() && ranks > 2 ? internal::kAnyRanks : ranks;
      auto rules = rules_of(steps_for(question, model), collective, hosts, bound);
      if (!by_ranks.empty() && alike(by_ranks.back(), rules)) by_ranks.pop_back();
      by_ranks.push_back(std::move(rules));
    }
    for (const auto& rules : by_ranks) all.insert(all.end(), rules.begin(), rules.end());
  }
  return all;
}

}  // namespace tutti::internal::tools
