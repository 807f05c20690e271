#include "plan/explain_machine.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <vector>

#include "plan/explain.h"
#include "plan/explained.h"
#include "selection/choose_text.h"
#include "transport/shm/ring_bytes.h"

namespace tutti::internal::tools {
namespace {

using internal::ChoiceTable;

constexpr std::array<const char*, kDistances> kNames{"same cache", "same package, no shared cache", "other package"};

// "1008M", "15.8M": for people, who need no more.
std::string about(std::size_t bytes) {
  double value = static_cast<double>(bytes);
  std::size_t unit = 0;
  for (; value >= 1024 && unit < 3; ++unit) value /= 1024;
  return fmt::format("{:.4g}{}", value, std::array{"", "K", "M", "G"}[unit]);
}

std::string name_of(const MachineCandidate& each) {
  const std::string algorithm(to_string(each.candidate.entry->algorithm));
  return each.by.empty() ? algorithm : fmt::format("{} by {}", algorithm, each.by);
}

std::string number(int value) { return value < 0 ? "-" : std::to_string(value); }

std::string cache_of(const Part& part) {
  if (part.at.cache_level == 0) return part.ranks.size() > 1 ? "none that two ranks share" : "-";
  const std::string size = part.at.cache_bytes == 0 ? "" : fmt::format(" of {}", about(part.at.cache_bytes));
  return fmt::format("L{} {}{}", part.at.cache_level, part.at.cache, size);
}

std::string places(const Explained& on) {
  std::string text = fmt::format("# on {}: {} cores, {} processors; ranks lie as tutti run --bind core has them\n",
                                 on.placed.name(), on.placed.cores(), on.placed.processors());
  text += fmt::format("  {:<14} {:>7} {:>12}  {}\n", "ranks", "package", "memory node", "largest cache");
  for (const Part& part : parts_of(on.placed))
    text += fmt::format("  {:<14} {:>7} {:>12}  {}\n", ranges(part.ranks), number(part.at.package),
                        number(part.at.node), cache_of(part));
  if (on.ranks() > on.placed.cores())
    text += fmt::format("# {} ranks are more than the cores: some are hardware threads of one core, priced as cores\n",
                        on.ranks());
  return text;
}

std::string links(const Explained& on) {
  std::string text = "# us until a message of so many bytes has arrived, own buffers, by how far two ranks are\n";
  text += fmt::format("  {:<29} {:>6} {:>7} {:>7} {:>7} {:>7}\n", "", "pairs", "8", "4K", "64K", "1M");
  const auto pairs = on.pairs();
  for (std::size_t i = 0; i < kDistances; ++i) {
    const CostCurve& arrival = on.costs.links[i].arrival;
    text += fmt::format("  {:<29} {:>6} {:>7.3g} {:>7.3g} {:>7.3g} {:>7.3g}  {}\n", kNames[i], pairs[i], arrival.at(8),
                        arrival.at(4 << 10), arrival.at(64 << 10), arrival.at(1 << 20), on.costs.known[i]);
  }
  return text + fmt::format("  {:<29} {:>6} {:>7} {:>7.3g} {:>7.3g} {:>7.3g}  {}\n", "to combine", "", "",
                            on.costs.reduce.at(4 << 10), on.costs.reduce.at(64 << 10), on.costs.reduce.at(1 << 20),
                            on.costs.reduce_known);
}

std::string row(const Explained& on, const MachineCandidate& each) {
  const Cost& cost = *each.candidate.cost;
  const Traffic& traffic = each.traffic;
  const std::string inputs = traffic.inputs == 0 ? "-" : fmt::format("{} ({} far)", traffic.inputs, traffic.far_inputs);
  return fmt::format("{} {:<27} {:>9.2f} {:>8} {:>8} {:>8} {:>6} {:>7} {:>7} {:>12} {:>6}\n",
                     on.is_chosen(each) ? '*' : ' ', name_of(each), cost.us, about(cost.max_bytes_sent),
                     about(traffic.across_caches), about(traffic.across_packages), traffic.peers,
                     about(on.ring_bytes_of(each)), about(cost.max_bytes_reduced), inputs, each.candidate.chunks);
}

std::string prices(const Explained& on) {
  std::string text = fmt::format("  {:<27} {:>9} {:>8} {:>8} {:>8} {:>6} {:>7} {:>7} {:>12} {:>6}\n", "", "us", "sent",
                                 "x cache", "x pack.", "peers", "rings", "reduced", "inputs", "chunks");
  for (const MachineCandidate& each : on.all)
    if (each.candidate.cost) text += row(on, each);
  text +=
      "# sent, peers, reduced, inputs of one pass: of the rank with most; far: from ranks that share no cache with it\n"
      "# x cache, x pack.: what all ranks send to other caches, and of that to other packages; rings: of all ranks\n";
  for (const MachineCandidate& each : on.all)
    if (!each.candidate.cost) text += fmt::format("  {:<22} not allowed: {}\n", name_of(each), each.candidate.why_not);
  return text;
}

std::string verdict(const Explained& on) {
  const MachineCandidate *chosen = on.table_choice(), *today = on.cheapest_today(), *best = on.cheapest();
  if (chosen == nullptr) return "";
  const auto line = [&](std::string_view what, const MachineCandidate& each) {
    const double us = each.candidate.cost->us;
    return fmt::format("  {:<44} {}, {:.2f} us: {:.2f} times as fast\n", what, name_of(each), us,
                       us > 0 ? chosen->candidate.cost->us / us : 1);
  };
  std::string text = fmt::format("# by the model\n  {:<44} {}, {:.2f} us\n", "the table's choice", name_of(*chosen),
                                 chosen->candidate.cost->us);
  text +=
      today == chosen ? "  nothing that a call can use is cheaper\n" : line("the cheapest that a call can use", *today);
  return best == today ? text : text + line("the cheapest if groups of ranks were hosts", *best);
}

std::string of_rings(const Explained& on) {
  const std::size_t ranks = static_cast<std::size_t>(on.ranks()), ring = on.ring_bytes;
  std::string text = fmt::format(
      "  rings: {} for each way of a pair (of 2 ranks: {}). If each rank sends to each other one there are {} lanes:\n"
      "    {} of rings, and {} of announcements\n",
      about(ring), about(internal::shm::ring_bytes_for(2, false).both_ways), on.lanes, about(on.lanes * ring),
      about(on.lanes * internal::shm::kLaneHeadBytes));
  if (const std::size_t longest = internal::shm::ring_bytes_for(ranks, false).one_way; longest > ring)
    text += fmt::format("    each ring grows to {} while a rank only sends to that peer\n", about(longest));
  const auto parts = parts_of(on.placed);
  const auto largest = std::ranges::max_element(parts, {}, [](const Part& part) { return part.ranks.size(); });
  if (largest->at.cache_level > 0 && largest->at.cache_bytes > 0)
    text += fmt::format("    the ranks {} own {} of these rings, beside a cache of {}\n", ranges(largest->ranks),
                        about(largest->ranks.size() * (ranks - 1) * ring), about(largest->at.cache_bytes));
  return text;
}

std::string of_call(const Explained& on, const MachineCandidate& each) {
  const Traffic& traffic = each.traffic;
  std::string text = fmt::format(
      "  {}:\n    {}\n    a rank has {} peer{}, and looks at the lane of each when it waits; {} of rings\n    ",
      name_of(each), each.candidate.entry->idea, traffic.peers, traffic.peers == 1 ? "" : "s",
      about(on.ring_bytes_of(each)));
  if (traffic.combining == 0) return text + "nobody combines\n";
  return text + fmt::format("{} of {} ranks combine, at most {} each, in passes of at most {} inputs, {} of them far\n",
                            traffic.combining, on.ranks(), about(each.candidate.cost->max_bytes_reduced),
                            traffic.inputs, traffic.far_inputs);
}

std::string consequences(const Explained& on) {
  if (on.ranks() == 1) return "# one rank has no peers, and so no lanes\n";
  std::string text = fmt::format("# what {} ranks change\n", on.ranks());
  text += of_rings(on);
  std::vector<const MachineCandidate*> told;
  for (const MachineCandidate* each : {on.table_choice(), on.cheapest_today(), on.cheapest()})
    if (each != nullptr && std::ranges::find(told, each) == told.end()) {
      told.push_back(each);
      text += of_call(on, *each);
    }
  return text +
         "  with symmetric buffers there are no rings: peers read and write them where they lie\n"
         "# not in the prices: that ranks share the memory and the links between caches and packages; that caches are\n"
         "# full; symmetric buffers\n";
}

nlohmann::ordered_json json_of(const Explained& on, const MachineCandidate& each) {
  nlohmann::ordered_json object{{"algorithm", to_string(each.candidate.entry->algorithm)},
                                {"groups", each.by},
                                {"allowed", each.candidate.cost.has_value()}};
  if (!each.candidate.cost) {
    object["why"] = each.candidate.why_not;
    return object;
  }
  object.update({{"us", each.candidate.cost->us},
                 {"max_messages_sent", each.candidate.cost->max_messages_sent},
                 {"max_bytes_sent", each.candidate.cost->max_bytes_sent},
                 {"max_bytes_reduced", each.candidate.cost->max_bytes_reduced},
                 {"bytes_across_caches", each.traffic.across_caches},
                 {"bytes_across_packages", each.traffic.across_packages},
                 {"peers", each.traffic.peers},
                 {"ring_bytes", on.ring_bytes_of(each)},
                 {"combining_ranks", each.traffic.combining},
                 {"inputs", each.traffic.inputs},
                 {"far_inputs", each.traffic.far_inputs},
                 {"chunks", each.candidate.chunks}});
  return object;
}

}  // namespace

std::string explain_machine(const Question& question, const PlacedRanks& placed, const ChoiceTable& table,
                            const std::string& name) {
  const Explained on(question, placed, table, name);
  return fmt::format("# {} of {} bytes of float32, {} rank{} on one host, order {}\n# {}, hash {:016x}\n",
                     to_string(question.collective), question.bytes, on.ranks(), on.ranks() == 1 ? "" : "s",
                     to_string(question.order), name, internal::hash_of(table)) +
         places(on) + "\n" + links(on) + "\n" + choice_in_words(on.chooser, question, table, name) + verdict(on) +
         "\n" + prices(on) + "\n" + consequences(on);
}

std::string explain_machine_json(const Question& question, const PlacedRanks& placed, const ChoiceTable& table,
                                 const std::string& name) {
  const Explained on(question, placed, table, name);
  std::string text;
  for (const MachineCandidate& each : on.all) text += json_of(on, each).dump() + "\n";
  nlohmann::ordered_json parts = nlohmann::json::array(), links = nlohmann::json::array();
  for (const Part& part : parts_of(placed))
    parts.push_back({{"ranks", ranges(part.ranks)},
                     {"package", part.at.package},
                     {"node", part.at.node},
                     {"cache_level", part.at.cache_level},
                     {"cache", part.at.cache_level == 0 ? -1 : part.at.cache}});
  const auto pairs = on.pairs();
  for (std::size_t i = 0; i < kDistances; ++i)
    links.push_back({{"distance", kNames[i]}, {"pairs", pairs[i]}, {"known", on.costs.known[i]}});
  const nlohmann::ordered_json last{{"collective", to_string(question.collective)},
                                    {"ranks", on.ranks()},
                                    {"bytes", question.bytes},
                                    {"chosen", to_string(on.chosen())},
                                    {"table", fmt::format("{:016x}", internal::hash_of(table))},
                                    {"ring_bytes_each", on.ring_bytes},
                                    {"lanes", on.lanes},
                                    {"parts", parts},
                                    {"links", links}};
  return text + last.dump() + "\n";
}

}  // namespace tutti::internal::tools
