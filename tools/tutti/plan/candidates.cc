#include "plan/candidates.h"

#include <fmt/format.h>

#include <algorithm>

#include "tutti/error.h"

namespace tutti::internal::tools {

std::string objection_to(const AlgorithmEntry& entry, const Question& question) {
  const int leaves = question.layout.leaves();
  if (entry.canonical || question.order == Order::any || leaves <= 2) return "";
  return fmt::format("cannot combine {} inputs in the canonical order; --order any would allow it", leaves);
}

Cost price_of(const AlgorithmEntry& entry, int chunks, const Question& question, const CostModel& model) {
  const auto schedules = build_all(entry, question.layout, {.chunks = entry.pipelined ? chunks : 1});
  const std::size_t element = size_of(DType::float32), count = question.bytes / element;
  const std::size_t accumulation = accumulation_size_of(DType::float32);
  if (!question.one_machine) return price(schedules, question.layout, count, element, accumulation, model);
  CostModel links = model;
  links.local = model.remote;
  return price(schedules, Layout::of(question.layout.ranks()), count, element, accumulation, links);
}

std::vector<Candidate> candidates(const Question& question, const internal::Chooser& chooser, const CostModel& model) {
  std::vector<Candidate> all;
  for (const AlgorithmEntry& entry : catalogue()) {
    if (entry.collective != question.collective) continue;
    Candidate& candidate = all.emplace_back(Candidate{&entry, 1, {}, objection_to(entry, question)});
    if (!candidate.why_not.empty()) continue;
    if (entry.pipelined)
      candidate.chunks = chooser.chunks(entry.collective, entry.algorithm, question.bytes, question.order);
    try {
      candidate.cost = price_of(entry, candidate.chunks, question, model);
    } catch (const Error& error) {
      candidate.why_not = error.what();
    }
  }
  std::ranges::stable_sort(
      all, [](const Candidate& a, const Candidate& b) { return a.cost && (!b.cost || a.cost->us < b.cost->us); });
  return all;
}

}  // namespace tutti::internal::tools
