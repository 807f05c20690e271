// tutti tune: measures what messages and reductions cost here, predicts every algorithm from its schedules, writes a
// table of which algorithm to use when, and holds the predictions against the clock.
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <deque>
#include <filesystem>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "bench/limit.h"
#include "command.h"
#include "machine/host.h"
#include "run/launch.h"
#include "run/reserved_port.h"
#include "selection/choose_text.h"
#include "tune/check.h"
#include "tune/measure.h"
#include "tune/rules.h"
#include "tune/text.h"
#include "tutti/communicator.h"

namespace tutti::internal::tools {
namespace {

using internal::ChoiceTable;
using internal::HostCount;

constexpr std::uint64_t kMaxBytes = 64 << 20;

struct TuneOptions {
  int ranks = 4;
  std::string transport = "auto";
  std::string out;
  std::vector<std::uint64_t> sizes{8, 4 << 10, 64 << 10, 1 << 20};
  int rounds = 15;
  int most_ranks = 32;
  int ranks_per_host = 1;
  bool json = false;

  std::vector<std::string> transports() const {
    if (transport == "auto") return {"shm", "tcp"};
    return {transport};
  }
};

// Rank 0's, in memory alone: the text that a communicator is made with.
class TableInMemory {
 public:
  explicit TableInMemory(const std::string& text) : fd_(memfd_create("tutti table", MFD_CLOEXEC)) {
    if (fd_ < 0 || write(fd_, text.data(), text.size()) != static_cast<ssize_t>(text.size()))
      throw std::runtime_error("the system gives no memory for a table");
  }
  ~TableInMemory() { close(fd_); }
  TableInMemory(const TableInMemory&) = delete;
  TableInMemory& operator=(const TableInMemory&) = delete;
  std::string path() const { return fmt::format("/proc/self/fd/{}", fd_); }

 private:
  int fd_;
};

// What one rank does; all do the same, and rank 0 speaks for them.
class Tuner {
 public:
  Tuner(const TuneOptions& options, const Settings& settings, std::size_t cores)
      : options_(options), settings_(settings), home_(Communicator::join(settings)), start_(now_us()) {
    table_.model.cores = static_cast<int>(cores);
  }

  void run() {
    measure();
    if (leads()) derive();
    for (const std::string& transport : options_.transports()) check(transport);
    if (leads()) finish();
  }

 private:
  bool leads() const { return home_.rank() == 0; }

  void tell(const std::string& what) const {
    if (leads()) say_on_stderr(fmt::format("tutti tune: {:5.1f} s  {}\n", (now_us() - start_) / 1e6, what));
  }

  // Another job of the same ranks, over `transport` and by this table of rank 0's.
  Communicator join(const std::string& transport, const std::string& table) {
    Settings settings = settings_;
    settings.transport = transport;
    std::optional<ReservedPort> port;
    std::optional<TableInMemory> text;
    int number = 0;
    if (leads()) {
      number = port.emplace().port();
      settings.table = text.emplace(table).path();
    }
    home_.broadcast(std::span(&number, 1), 0);
    settings.master_port = static_cast<std::uint16_t>(number);
    return Communicator::join(settings);
  }

  // The jobs that are measured, over one transport each; their first two ranks alone measure links.
  struct Measured {
    std::string transport;
    Communicator world, pair;
    std::optional<LinkProbe> link;
    std::vector<double> barrier_us;
  };

  // Transports by turns in every round, so that what slows the machine for a while slows them alike.
  void measure() {
    std::deque<Measured> all;
    std::optional<ReduceProbe> reduce;
    for (const std::string& transport : options_.transports()) {
      Communicator world = join(transport, probe_table());
      Communicator pair = world.split(world.rank() < 2 ? 0 : -1);
      Measured& each = all.emplace_back(Measured{transport, std::move(world), std::move(pair), {}, {}});
      if (each.pair.size() == 2) each.link.emplace(each.pair);
    }
    if (all.front().pair.size() == 2) reduce.emplace(all.front().pair);
    for (int round = 0; round < options_.rounds; ++round) {
      if (round % 5 == 0) tell(fmt::format("measuring messages and reductions, round {}", round + 1));
      for (Measured& each : all) {
        if (each.link) each.link->round();
        if (reduce && &each == &all.front()) reduce->round();
        each.barrier_us.push_back(sample_barrier(each.world));
      }
    }
    if (!leads()) return;
    CostModel& model = table_.model;
    model.reduce = reduce->result();
    for (const Measured& each : all) {
      LinkCost& link = each.transport == "tcp" ? model.remote : model.local;
      const bool in_pieces = link.in_pieces;
      link = each.link->result();
      link.in_pieces = in_pieces;
    }
    for (const Measured& each : all)
      if (each.world.size() > model.cores)
        (each.transport == "tcp" ? model.remote : model.local).switch_us =
            switch_us(median(each.barrier_us), each.world.size(), each.transport);
  }

  // What a barrier of crowded ranks takes beyond what their messages cost, for each time that one of them waits.
  double switch_us(double barrier_us, int ranks, const std::string& transport) const {
    const internal::Chooser chooser(ChoiceTable::built_in(), ranks, transport == "tcp" ? ranks : 1);
    const AlgorithmEntry& entry =
        *find_algorithm(Collective::barrier, chooser.choose(Collective::barrier, 0, Order::canonical));
    CostModel model = table_.model;
    LinkCost& link = transport == "tcp" ? model.remote : model.local;
    link.switch_us = 0;
    const double without = predict(entry, ranks, 0, 1, model, transport);
    link.switch_us = 1;
    const double each = predict(entry, ranks, 0, 1, model, transport) - without;
    return each > 0 ? in_three_digits(std::max(0.0, (barrier_us - without) / each)) : 0;
  }

  void derive() {
    Grid grid{.ranks_per_host = options_.ranks_per_host};
    std::erase_if(grid.ranks, [&](int ranks) { return ranks > options_.most_ranks; });
    for (const std::string& transport : options_.transports()) {
      const HostCount hosts = transport == "tcp" ? HostCount::several : HostCount::one;
      tell(fmt::format("predicting every algorithm on {}", hosts == HostCount::one ? "one host" : "several hosts"));
      const auto rules = make_rules(table_.model, hosts, grid);
      table_.rules.insert(table_.rules.end(), rules.begin(), rules.end());
    }
  }

  void check(const std::string& transport) {
    Communicator world = join(transport, leads() ? internal::to_text(table_) : "");
    const std::vector<std::size_t> sizes(options_.sizes.begin(), options_.sizes.end());
    const auto checks = check_predictions(world, transport, sizes, options_.rounds, [&](int round) {
      if (round % 5 == 0) tell(fmt::format("measuring every algorithm over {}, round {}", transport, round));
    });
    checks_.insert(checks_.end(), checks.begin(), checks.end());
  }

  void finish() const {
    const std::string name = fmt::format("{:016x}", internal::hash_of(table_));
    std::vector<std::string> header{
        fmt::format("By tutti tune -n {} --transport {}, hash {}.", home_.size(), options_.transport, name),
        fmt::format("Predictions missed what {} ranks measured by {:.0f} % (median).", home_.size(),
                    100 * median_error(checks_))};
    const std::string text = annotated(table_, header);
    if (!options_.out.empty()) write_file(text);
    if (options_.json) {
      nlohmann::ordered_json last{
          {"median_relative_error", median_error(checks_)}, {"rules", table_.rules.size()}, {"table", name}};
      if (options_.out.empty()) last["text"] = text;
      fmt::print("{}{}\n", check_json(checks_, home_.size()), last.dump());
      return;
    }
    // As one file: a table, with what was found behind it as comments.
    fmt::print("{}{}", options_.out.empty() ? text + "\n" : "", check_text(checks_, home_.size()));
    if (!options_.out.empty())
      fmt::print("# {} rules in {}, hash {}: set TUTTI_TABLE={} for rank 0\n", table_.rules.size(), options_.out, name,
                 options_.out);
  }

  // Whole or not at all: a job may be reading the old one.
  void write_file(const std::string& text) const {
    const std::string fresh = options_.out + ".new";
    std::ofstream file(fresh, std::ios::binary);
    file << text;
    file.close();
    if (!file || std::rename(fresh.c_str(), options_.out.c_str()) != 0) {
      std::remove(fresh.c_str());
      throw std::runtime_error(fmt::format("cannot write {}", options_.out));
    }
  }

  const TuneOptions& options_;
  const Settings settings_;
  Communicator home_;
  const double start_;
  ChoiceTable table_;
  std::vector<Check> checks_;
};

void check(const TuneOptions& options) {
  if (std::ranges::max(options.sizes) > kMaxBytes)
    throw UsageError(fmt::format("--sizes: {} bytes are more than {}", std::ranges::max(options.sizes), kMaxBytes));
  if (options.out.empty()) return;
  const std::filesystem::path path(options.out);
  const auto folder = path.has_parent_path() ? path.parent_path() : std::filesystem::path(".");
  if (std::filesystem::is_directory(path) || access(folder.c_str(), W_OK) != 0)
    throw UsageError(fmt::format("--out {}: no file can be written there", options.out));
}

int run(const TuneOptions& options) {
  check(options);
  if (const auto status = launch_self("tutti tune", options.ranks, Bind::none)) return *status;
  Settings settings = Settings::from_env();
  settings.transport = "auto";
  settings.table.clear();
  settings.warn_after = std::chrono::minutes(5);  // the others wait while rank 0 predicts
  if (settings.size < 2) throw UsageError("a link has two ends: this takes at least 2 ranks");
  const std::size_t cores = usable_cores().size();  // before this process keeps to one
  topology::run_on(places_for(settings.size)[static_cast<std::size_t>(settings.rank)]);
  Tuner(options, settings, cores).run();
  return 0;
}

}  // namespace

Subcommand add_tune(CLI::App& app) {
  CLI::App* parser = app.add_subcommand(
      "tune", "Measure this machine's links, write a table of which algorithm to use when, and check its predictions");
  auto options = std::make_shared<TuneOptions>();
  parser->add_option("-n,--ranks", options->ranks, "ranks to start here, for the check")
      ->check(whole_number(2, 64))
      ->capture_default_str();
  parser->add_option("--transport", options->transport, "what to measure; auto: both")
      ->check(CLI::IsMember({"auto", "shm", "tcp"}));
  parser->add_option("--out", options->out, "the table's file; without it the table is printed");
  parser->add_option("--sizes", options->sizes, "of the check, separated by commas: 8,4K,1M")
      ->transform(CLI::AsSizeValue(false))
      ->delimiter(',');
  parser->add_option("--rounds", options->rounds, "of each measurement; the median counts")
      ->check(whole_number(1, 1000));
  parser->add_option("--max-ranks", options->most_ranks, "rules for at most so many ranks; the last hold beyond")
      ->check(whole_number(2, 512));
  parser->add_option("--ranks-per-host", options->ranks_per_host, "that rules for several hosts suppose")
      ->check(whole_number(1, 512))
      ->capture_default_str();
  parser->add_flag("--json", options->json, "one object a check, and one for the table");
  return {parser, [options] { return run(*options); }};
}

}  // namespace tutti::internal::tools
