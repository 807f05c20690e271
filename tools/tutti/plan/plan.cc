// tutti plan ring -n 4: prints the schedules of an algorithm, proves them, prices them, and shows them run.
// tutti plan --explain all_reduce -n 4: which algorithm a call would use, and why.
// tutti plan --list: every algorithm, with its cost.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <numeric>
#include <sstream>

#include "collectives/catalogue.h"
#include "command.h"
#include "plan/explain.h"
#include "plan/explain_machine.h"
#include "plan/list.h"
#include "plan/prove.h"
#include "plan/watch.h"
#include "schedule/cost.h"
#include "schedule/text.h"
#include "schedule/verify.h"
#include "selection/choose_text.h"
#include "tutti/settings.h"
#include "types/collective.h"

namespace tutti::internal::tools {
namespace {

constexpr int kMaxPlannedRanks = 512;  // n schedules of some n steps each: beyond, a plan is no longer for people
constexpr const char* kLegend =
    "the table says whose data each rank holds: 0-2 stands for the inputs of 0, 1 and 2, combined";

struct PlanOptions {
  std::string algorithm;   // of --explain and --list: the collective
  std::string collective;  // empty: all_reduce, or the one that has the algorithm
  int ranks = 4;
  int root = 0;
  int chunks = 1;
  std::vector<int> leaves;  // by rank; empty: one each
  std::vector<int> hosts;   // by rank; or their number alone; empty: one
  std::uint64_t bytes = 1 << 20;
  int rank = -1;  // whose schedule to print; -1: all
  bool verify = false, cost = false, watch = false, explain = false, list = false, json = false;
  std::string order = "canonical";  // of --explain
  bool one_machine = false;
  std::string topology;    // of --explain: a file or a description; empty: all ranks of a host are alike
  std::string table_file;  // empty: TUTTI_TABLE, or the built-in table
};

// An algorithm for given ranks.
struct Planned {
  const AlgorithmEntry* entry;
  Layout layout;
  Goal goal;
  std::vector<Schedule> schedules;
};

std::string names_in_catalogue() {
  std::vector<std::string> names;
  for (const AlgorithmEntry& entry : catalogue()) names.push_back(name_of(entry));
  return fmt::format("{}", fmt::join(names, ", "));
}

const AlgorithmEntry& find_entry(const PlanOptions& options) {
  const auto algorithm = parse_algorithm(options.algorithm);
  const auto collective = parse_collective(options.collective.empty() ? "all_reduce" : options.collective);
  if (!collective) throw UsageError(fmt::format("there is no collective {}", options.collective));
  const AlgorithmEntry* entry = algorithm ? find_algorithm(*collective, *algorithm) : nullptr;
  if (entry == nullptr && algorithm && options.collective.empty()) {
    const auto other = std::ranges::find(catalogue(), *algorithm, &AlgorithmEntry::algorithm);
    if (other != catalogue().end()) entry = &*other;
  }
  if (entry != nullptr) return *entry;
  throw UsageError(
      fmt::format("there is no {} {}; there are {}", to_string(*collective), options.algorithm, names_in_catalogue()));
}

// The table of --table or TUTTI_TABLE, and its name.
std::pair<internal::ChoiceTable, std::string> table_of(const PlanOptions& options) {
  const std::string path = options.table_file.empty() ? Settings::from_env().table : options.table_file;
  if (path.empty()) return {internal::ChoiceTable::built_in(), "the built-in table"};
  return {internal::parse_table(internal::read_table_file(path), path), path};
}

// Consecutive ranks share a host where only the number of hosts is given, and hosts are as even as can be.
std::vector<int> hosts_by_rank(const PlanOptions& options, int ranks) {
  const int hosts = options.hosts.empty() ? 1 : options.hosts.front();
  if (options.hosts.size() < 2 && (hosts < 1 || hosts > ranks))
    throw UsageError(fmt::format("--hosts {} is outside [1, {}]", hosts, ranks));
  std::vector<int> host;
  std::map<int, int> numbers;  // in the order of their first ranks, as a communicator numbers them
  for (int rank = 0; rank < ranks; ++rank) {
    const int given = options.hosts.size() < 2 ? rank * hosts / ranks : options.hosts[static_cast<std::size_t>(rank)];
    host.push_back(numbers.try_emplace(given, static_cast<int>(numbers.size())).first->second);
  }
  return host;
}

Layout layout_of(const PlanOptions& options) {
  int ranks = options.ranks;
  if (options.hosts.size() > 1) ranks = static_cast<int>(options.hosts.size());
  if (!options.leaves.empty()) ranks = static_cast<int>(options.leaves.size());
  if (options.hosts.size() > 1 && static_cast<int>(options.hosts.size()) != ranks)
    throw UsageError(fmt::format("--hosts says where {} ranks are, --leaves has {}", options.hosts.size(), ranks));
  if (ranks > kMaxPlannedRanks)
    throw UsageError(fmt::format("{} ranks are more than the {} of a plan", ranks, kMaxPlannedRanks));
  Layout layout = Layout::of(ranks);
  layout.host = hosts_by_rank(options, ranks);
  for (std::size_t rank = 0; rank < options.leaves.size(); ++rank)
    layout.first_leaf[rank + 1] = layout.first_leaf[rank] + options.leaves[rank];
  return layout;
}

Planned plan(const PlanOptions& options) {
  const AlgorithmEntry& entry = find_entry(options);
  const Layout layout = layout_of(options);
  const int ranks = layout.ranks();
  if (options.rank >= ranks) throw UsageError(fmt::format("--rank {} is outside [0, {})", options.rank, ranks));
  Planned planned{&entry, layout, {}, {}};
  // What is claimed is what is to be proven; that of no more than two leaves, any order is the canonical one.
  const bool canonical = entry.canonical || planned.layout.leaves() <= 2;
  planned.goal = {entry.collective, options.root, canonical ? Order::canonical : Order::any};
  planned.schedules = build_all(entry, planned.layout, {.root = options.root, .chunks = options.chunks});
  return planned;
}

// The text of each schedule that was asked for: a line of its own, then one a step.
std::vector<std::string> texts(const Planned& planned, const PlanOptions& options) {
  std::vector<std::string> texts;
  std::istringstream lines(to_text(planned.schedules));
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("rank")) texts.emplace_back();
    texts.back() += line + "\n";
  }
  if (options.rank < 0) return texts;
  return {texts[static_cast<std::size_t>(options.rank)]};
}

// "((0+1)+2)" of the postfix 0 1 + 2 +
std::string infix(const Expression& expression) {
  std::vector<std::string> stack;
  for (const int symbol : expression) {
    if (symbol != kCombine) {
      stack.push_back(std::to_string(symbol));
      continue;
    }
    const std::string top = std::move(stack.back());
    stack.pop_back();
    stack.back() = fmt::format("({}+{})", stack.back(), top);
  }
  return stack.empty() ? "" : stack.back();
}

std::string describe(const Proof& proof, const Planned& planned) {
  if (!proof.holds) return fmt::format("refuted: {}\n", proof.reason);
  std::string text = fmt::format(
      "proven for every interleaving, without buffering: no deadlock, no race, the right result. {} message{}, {} "
      "round{}\n",
      proof.messages, proof.messages == 1 ? "" : "s", proof.rounds, proof.rounds == 1 ? "" : "s");
  if (proof.slices.empty()) return text;
  const bool alike = std::ranges::all_of(proof.slices, [&](const Expression& e) { return e == proof.slices.front(); });
  text += fmt::format("combined in {}:",
                      planned.goal.order == Order::canonical ? "the canonical order" : "an order of its own");
  if (alike) return text + fmt::format(" {}\n", infix(proof.slices.front()));
  for (std::size_t slice = 0; slice < proof.slices.size(); ++slice) {
    text += fmt::format("\n  slice {}: {}", slice, infix(proof.slices[slice]));
  }
  return text + "\n";
}

Cost cost_of(const Planned& planned, const PlanOptions& options) {
  const std::size_t element = size_of(DType::float32);
  return price(planned.schedules, planned.layout, options.bytes / element, element,
               accumulation_size_of(DType::float32), table_of(options).first.model);
}

std::string describe(const Cost& cost, const Planned& planned, const PlanOptions& options) {
  const auto [table, name] = table_of(options);
  const CostModel& model = table.model;
  const bool several = planned.layout.hosts() > 1;
  std::string text = fmt::format(
      "price of {} bytes of float32: {:.2f} us on {}, by the parameters of {}:\n  a message of 8 bytes {:.2f} us, of "
      "1M "
      "{:.0f}, to combine 1M {:.0f}\n",
      options.bytes, cost.us, several ? fmt::format("{} hosts", planned.layout.hosts()) : "one host", name,
      model.local.arrival.at(8), model.local.arrival.at(1 << 20), model.reduce.at(1 << 20));
  if (several)
    text += fmt::format("  between hosts a message of 8 bytes {:.2f} us, of 1M {:.0f}\n", model.remote.arrival.at(8),
                        model.remote.arrival.at(1 << 20));
  text += fmt::format(
      "  the busiest rank sends {} messages of together {} bytes and receives {} bytes; scratch: {} bytes\n",
      cost.max_messages_sent, cost.max_bytes_sent, cost.max_bytes_received, cost.scratch_bytes);
  if (several)
    text += fmt::format("  between hosts the busiest rank sends {} bytes, all ranks together {} bytes\n",
                        cost.max_bytes_between_hosts, cost.bytes_between_hosts);
  return text;
}

void print_json(const Planned& planned, const PlanOptions& options, const Proof* proof) {
  int rank = std::max(options.rank, 0);
  for (const std::string& text : texts(planned, options)) {
    const Schedule& schedule = planned.schedules[static_cast<std::size_t>(rank)];
    nlohmann::ordered_json object{{"rank", rank++},
                                  {"slices", schedule.slices},
                                  {"chunks", schedule.chunks},
                                  {"scratch_rows", schedule.scratch_rows},
                                  {"steps", nlohmann::json::array()}};
    std::istringstream lines(text);
    std::string line;
    std::getline(lines, line);  // the schedule's own
    while (std::getline(lines, line)) object["steps"].push_back(line.substr(line.find_first_not_of(' ')));
    fmt::print("{}\n", object.dump());
  }
  nlohmann::ordered_json last{{"collective", to_string(planned.entry->collective)},
                              {"algorithm", to_string(planned.entry->algorithm)},
                              {"ranks", planned.layout.ranks()}};
  if (proof != nullptr) {
    last.update({{"holds", proof->holds},
                 {"canonical", proof->canonical},
                 {"rounds", proof->rounds},
                 {"messages", proof->messages}});
    if (!proof->holds) last["reason"] = proof->reason;
  }
  if (options.cost) {
    const Cost cost = cost_of(planned, options);
    last.update({{"bytes", options.bytes},
                 {"us", cost.us},
                 {"max_bytes_sent", cost.max_bytes_sent},
                 {"max_bytes_received", cost.max_bytes_received},
                 {"max_bytes_between_hosts", cost.max_bytes_between_hosts},
                 {"bytes_between_hosts", cost.bytes_between_hosts},
                 {"scratch_bytes", cost.scratch_bytes}});
  }
  fmt::print("{}\n", last.dump());
}

Collective collective_of(const PlanOptions& options, std::string_view flag) {
  const auto collective = parse_collective(options.algorithm);
  if (!collective)
    throw UsageError(fmt::format("there is no collective {}; {} takes one, not an algorithm", options.algorithm, flag));
  return *collective;
}

int run_explain_machine(const PlanOptions& options, const Question& question) {
  if (question.layout.hosts() > 1 || question.one_machine)
    throw UsageError(
        "--topology is of one machine, where all ranks share memory: it goes with neither --hosts nor --one-machine. "
        "What several such machines add is what --hosts says without it");
  const auto [table, name] = table_of(options);
  const PlacedRanks placed(read_machine(options.topology), options.topology, question.layout.ranks());
  fmt::print("{}", options.json ? explain_machine_json(question, placed, table, name)
                                : explain_machine(question, placed, table, name));
  return 0;
}

int run_explain(const PlanOptions& options) {
  const Collective collective = collective_of(options, "--explain");
  const auto [table, name] = table_of(options);
  const Question question{collective, layout_of(options), traits_of(collective).has_bytes() ? options.bytes : 0,
                          *parse_order(options.order), options.one_machine};
  if (!options.topology.empty()) return run_explain_machine(options, question);
  fmt::print("{}", options.json ? explain_json(question, table) : explain(question, table, name));
  return 0;
}

int run_list(const PlanOptions& options) {
  std::optional<Collective> collective;
  if (!options.algorithm.empty()) collective = collective_of(options, "--list");
  fmt::print("{}", options.json ? list_algorithms_json(collective) : list_algorithms(collective));
  return 0;
}

int run_plan(const PlanOptions& options) {
  if (!options.topology.empty() && !options.explain) throw UsageError("--topology goes with --explain");
  if (options.list) return run_list(options);
  if (options.algorithm.empty()) throw UsageError("algorithm is required; tutti plan --list prints them all");
  if (options.explain) return run_explain(options);
  const Planned planned = plan(options);
  const bool prove = options.verify || options.watch;
  CallProof proven;
  if (options.verify && planned.layout.one_leaf_each())
    proven = prove_call(*planned.entry, planned.layout, planned.goal, planned.schedules, options.chunks, options.bytes);
  else if (prove)
    proven.proof = verify(planned.schedules, planned.layout, planned.goal);
  const Proof& proof = proven.proof;
  if (options.json) {
    print_json(planned, options, options.verify ? &proof : nullptr);
    return prove && !proof.holds ? 1 : 0;
  }
  fmt::print("# {} by {}, {} ranks: {}\n", to_string(planned.entry->collective), to_string(planned.entry->algorithm),
             planned.layout.ranks(), planned.entry->idea);
  if (!options.watch) fmt::print("{}", fmt::join(texts(planned, options), ""));
  if (options.watch && proof.holds) {
    fmt::print("# {}\n\n{}", kLegend, watch(planned.schedules, planned.layout, planned.goal));
  }
  if (prove) fmt::print("\n{}{}", describe(proof, planned), proven.of_plans);
  if (options.cost) fmt::print("\n{}", describe(cost_of(planned, options), planned, options));
  return prove && !proof.holds ? 1 : 0;
}

}  // namespace

Subcommand add_plan(CLI::App& app) {
  CLI::App* parser =
      app.add_subcommand("plan", "Print the schedules of an algorithm, prove and price them, watch them run");
  auto options = std::make_shared<PlanOptions>();
  parser->add_option("algorithm", options->algorithm,
                     "ring, two_shot, sliced_tree, …; a collective with --explain and --list");
  parser->add_option("--collective", options->collective, "all_reduce, unless only another has the algorithm");
  parser->add_option("-n,--ranks", options->ranks, "ranks")->check(whole_number(1))->capture_default_str();
  parser->add_option("--root", options->root, "of a broadcast, reduce, gather or scatter")->check(whole_number(0));
  parser->add_option("--chunks", options->chunks, "pieces that a slice is pipelined in")->check(whole_number(1, 1024));
  parser->add_option("--leaves", options->leaves, "inputs by rank, instead of -n: 2,1,3")
      ->delimiter(',')
      ->check(whole_number(0, 1024));
  parser
      ->add_option("--hosts", options->hosts,
                   "how many hosts of consecutive ranks; or each rank's host, instead of -n: 0,0,1,1")
      ->delimiter(',')
      ->check(whole_number(0, kMaxPlannedRanks));
  parser->add_option("--rank", options->rank, "print this rank's schedule alone")->check(whole_number(0));
  parser
      ->add_option("--bytes", options->bytes,
                   "of the message, for the price and the plans; K, M and G are powers of 1024")
      ->transform(CLI::AsSizeValue(false));
  parser->add_flag("--verify", options->verify, "prove it, and the plans of a call of those bytes");
  parser->add_flag("--cost", options->cost, "price it");
  parser->add_flag("--watch", options->watch, "show it run, round by round, instead of its steps");
  parser->add_flag("--explain", options->explain, "say which algorithm a call of this collective uses, and why");
  parser->add_flag("--list", options->list, "list all algorithms, or those of a collective, with their costs");
  parser->add_option("--order", options->order, "with --explain: that the call allows")
      ->check(CLI::IsMember({"canonical", "any"}));
  parser->add_flag("--one-machine", options->one_machine,
                   "with --explain: those hosts are ranks of one machine, over TCP, and share its cores");
  parser->add_option("--topology", options->topology,
                     "with --explain: the machine of the ranks, a file that lstopo --of xml has written, or "
                     "\"package:2 l3:4 core:8 pu:1\"");
  parser->add_option("--table", options->table_file, "a table that tutti tune wrote; else TUTTI_TABLE or the built-in");
  parser->add_flag("--json", options->json, "one object a rank, and one for the proof and the price");
  return {parser, [options] { return run_plan(*options); }};
}

}  // namespace tutti::internal::tools
