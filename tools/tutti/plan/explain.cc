#include "plan/explain.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "selection/choose_text.h"

namespace tutti::internal::tools {
namespace {

using internal::ChoiceTable;
using internal::Chooser;
using internal::Rule;
using internal::size_text;

// The built-in table stands behind every other.
std::string source_of(const Rule& rule, const ChoiceTable& table, const std::string& name) {
  const auto found = std::ranges::find(table.rules, rule);
  if (found == table.rules.end()) return "the built-in table, as no rule of the given one holds";
  return fmt::format("rule {} of {}", found - table.rules.begin() + 1, name);
}

std::string row(const Candidate& candidate, bool chosen) {
  const Cost& cost = *candidate.cost;
  return fmt::format("{} {:<18} {:>12.2f} {:>9} {:>11} {:>11} {:>11} {:>9} {:>11} {:>7}\n", chosen ? '*' : ' ',
                     to_string(candidate.entry->algorithm), cost.us, cost.max_messages_sent,
                     size_text(cost.max_bytes_sent), size_text(cost.max_bytes_received),
                     size_text(cost.max_bytes_reduced), cost.messages_between_hosts,
                     size_text(cost.bytes_between_hosts), candidate.chunks);
}

}  // namespace

std::string choice_in_words(const Chooser& chooser, const Question& question, const ChoiceTable& table,
                            const std::string& name) {
  const Rule* rule = chooser.rule_for(question.collective, question.bytes, question.order);
  const Algorithm chosen = chooser.choose(question.collective, question.bytes, question.order);
  return fmt::format("{}, by {}:\n  {}\n", to_string(chosen),
                     rule == nullptr ? "no rule" : source_of(*rule, table, name),
                     rule == nullptr ? "" : internal::to_text(*rule));
}

std::string explain(const Question& question, const ChoiceTable& table, const std::string& name) {
  const int ranks = question.layout.ranks(), hosts = question.layout.hosts();
  const Chooser chooser(table, ranks, hosts);
  const Algorithm chosen = chooser.choose(question.collective, question.bytes, question.order);
  std::string text = fmt::format("# {} of {} bytes of float32, {} ranks on {} host{}, order {}; {}, hash {:016x}\n",
                                 to_string(question.collective), question.bytes, ranks, hosts, hosts == 1 ? "" : "s",
                                 to_string(question.order), name, internal::hash_of(table));
  text += choice_in_words(chooser, question, table, name) + "\n";
  if (table.model == CostModel{})
    text +=
        "# predicted with parameters that nobody measured here: who comes before whom may hold, the figures do not\n";
  text += fmt::format("  {:<18} {:>12} {:>9} {:>11} {:>11} {:>11} {:>21} {:>7}\n", "", "predicted us", "messages",
                      "bytes sent", "received", "reduced", "between hosts", "chunks");
  const auto all = candidates(question, chooser, table.model);
  for (const Candidate& each : all)
    if (each.cost) text += row(each, each.entry->algorithm == chosen);
  text += "# of the busiest rank each; between hosts: messages and bytes of all ranks together\n";
  for (const Candidate& each : all)
    if (!each.cost) text += fmt::format("  {:<18} not allowed: {}\n", to_string(each.entry->algorithm), each.why_not);
  return text;
}

std::string explain_json(const Question& question, const ChoiceTable& table) {
  const Chooser chooser(table, question.layout.ranks(), question.layout.hosts());
  std::string text;
  for (const Candidate& each : candidates(question, chooser, table.model)) {
    nlohmann::ordered_json object{{"algorithm", to_string(each.entry->algorithm)}, {"allowed", each.cost.has_value()}};
    if (each.cost) {
      object.update({{"us", each.cost->us},
                     {"max_messages_sent", each.cost->max_messages_sent},
                     {"max_bytes_sent", each.cost->max_bytes_sent},
                     {"max_bytes_received", each.cost->max_bytes_received},
                     {"max_bytes_reduced", each.cost->max_bytes_reduced},
                     {"messages_between_hosts", each.cost->messages_between_hosts},
                     {"bytes_between_hosts", each.cost->bytes_between_hosts},
                     {"chunks", each.chunks}});
    } else {
      object["why"] = each.why_not;
    }
    text += object.dump() + "\n";
  }
  const Rule* rule = chooser.rule_for(question.collective, question.bytes, question.order);
  const nlohmann::ordered_json last{
      {"collective", to_string(question.collective)},
      {"ranks", question.layout.ranks()},
      {"hosts", question.layout.hosts()},
      {"bytes", question.bytes},
      {"chosen", to_string(chooser.choose(question.collective, question.bytes, question.order))},
      {"rule", rule == nullptr ? "" : internal::to_text(*rule)},
      {"table", fmt::format("{:016x}", internal::hash_of(table))}};
  return text + last.dump() + "\n";
}

}  // namespace tutti::internal::tools
