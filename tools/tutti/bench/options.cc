#include "bench/options.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>

#include "collectives/catalogue.h"
#include "command.h"
#include "cuda/reduce.h"
#include "types/collective.h"
#include "types/kinds.h"

namespace tutti::internal::tools {
namespace {

constexpr std::string_view kReduction = "reduction";  // beside these, and none of them
constexpr std::uint64_t kMaxBytes = std::uint64_t{1} << 40;

template <class Values>
std::vector<std::string> names_of(const Values& values) {
  std::vector<std::string> names;
  for (const auto value : values) names.emplace_back(to_string(value));
  return names;
}

// An option whose values have names.
template <class T>
CLI::Option* add_named(CLI::App& parser, const std::string& name, T& into, std::optional<T> (*parse)(std::string_view),
                       const std::vector<std::string>& names, const std::string& help) {
  const auto set = [&into, parse, names, name](const std::string& word) {
    const auto value = parse(word);
    if (!value) throw CLI::ValidationError(name, fmt::format("{} is not one of {}", word, fmt::join(names, ", ")));
    into = *value;
  };
  return parser.add_option_function<std::string>(name, set, help)->type_name(fmt::format("{}", fmt::join(names, "|")));
}

// What is measured: a collective, or the reduction alone.
void describe_subject(CLI::App& parser, BenchOptions& options) {
  std::vector<std::string> names;
  for (const CollectiveTraits& each : kCollectives) names.emplace_back(each.name);
  names.emplace_back(kReduction);
  const auto set = [&options, names](const std::string& word) {
    const auto collective = parse_collective(word);
    options.is_reduce = word == kReduction;
    if (!collective && !options.is_reduce)
      throw CLI::ValidationError("collective", fmt::format("{} is not one of {}", word, fmt::join(names, ", ")));
    options.collective = collective.value_or(Collective::all_reduce);
  };
  parser
      .add_option_function<std::string>(
          "collective", set, "what is measured; reduction: the reduction alone, in this process, without ranks")
      ->type_name(fmt::format("{}", fmt::join(names, "|")))
      ->required();
}

std::vector<std::string> algorithms_of(Collective collective, int ranks, Order order) {
  std::vector<std::string> names;
  for (const AlgorithmEntry& entry : catalogue()) {
    if (entry.collective != collective) continue;
    if (order == Order::any || entry.canonical || ranks <= 2) names.emplace_back(to_string(entry.algorithm));
  }
  return names;
}

void describe_sizes(CLI::App& parser, BenchOptions& options) {
  const CLI::AsSizeValue size(false);  // K, M and G are powers of 1024
  parser.add_option("--min", options.min_bytes, "smallest size, in bytes; K, M and G are powers of 1024")
      ->transform(size);
  parser.add_option("--max", options.max_bytes, "largest size, in bytes")->transform(size);
  parser.add_option("--factor", options.factor, "from one size to the next")->check(CLI::Range(2, 1 << 20));
  parser.add_option("--sizes", options.sizes, "these sizes instead, separated by commas: 0,8,100003,64K")
      ->transform(size)
      ->delimiter(',');
  parser
      .add_option("--iterations", options.iterations,
                  "calls a round, of the limit's loops too; 0: a number that suits the size")
      ->check(CLI::Range(0, 1'000'000'000));
  parser
      .add_option("--round-ms", options.round_ms,
                  "milliseconds that a round takes about, of the limit's loops too; 0: a tenth of a second at most")
      ->check(CLI::Range(0, 60'000));
  parser.add_option("--rounds", options.rounds, "rounds; the median is shown")->check(CLI::Range(1, 100'000));
}

void check_sizes(const BenchOptions& options) {
  const std::uint64_t largest = options.sizes.empty() ? options.max_bytes : std::ranges::max(options.sizes);
  if (largest > kMaxBytes) throw UsageError(fmt::format("a message of {} bytes is more than 1 TiB", largest));
  if (options.sizes.empty() && options.min_bytes > options.max_bytes) {
    throw UsageError(fmt::format("--min {} is larger than --max {}", options.min_bytes, options.max_bytes));
  }
}

}  // namespace

void describe(CLI::App& parser, BenchOptions& options) {
  describe_subject(parser, options);
  parser.add_option("-n,--ranks", options.ranks,
                    "ranks to start on this host; without it, this is one rank of a job that a launcher started. "
                    "Of reduction: sources, 2 unless said");
  parser
      .add_option("--transport", options.transport,
                  "how bytes move, else as TUTTI_TRANSPORT says; inproc: the ranks are threads of one process")
      ->check(CLI::IsMember({"auto", "shm", "tcp", "verbs", "inproc"}));
  std::vector<std::string> algorithms = names_of(all_algorithms());
  algorithms.insert(algorithms.begin(), "auto");
  add_named(parser, "--algorithm", options.algorithm, parse_algorithm, algorithms, "auto: as the library chooses")
      ->type_name("NAME");
  add_named(parser, "--order", options.order, parse_order, {"canonical", "any"}, "in which inputs may be combined");
  add_named(parser, "--dtype", options.dtype, parse_dtype, names_of(all_dtypes()), "element type")->type_name("TYPE");
  add_named(parser, "--op", options.op, parse_op, names_of(all_ops()), "reduction");
  parser.add_option("--root", options.root, "of a broadcast, reduce, gather or scatter");
  describe_sizes(parser, options);
  auto* const symmetric = parser.add_flag_function(
      "--symmetric", [&options](std::int64_t) { options.buffers = HostBuffers::symmetric; },
      "buffers that every rank of the host maps (Communicator::allocate)");
  parser
      .add_flag_function(
          "--adopted", [&options](std::int64_t) { options.buffers = HostBuffers::adopted; },
          "ordinary buffers that each rank shares in place (Communicator::adopt)")
      ->excludes(symmetric);
  parser.add_flag("--async", options.async, "start each call, then wait for it");
  parser.add_flag("--in-place", options.in_place,
                  "output over input; sums then grow from call to call, unless --touch");
  parser.add_flag("--touch", options.touch,
                  "each rank rewrites its input before every call, and all meet; only the calls are timed");
  parser.add_option("--device", options.device, "where the buffers lie, and of a reduction who reduces")
      ->check(CLI::IsMember({"cpu", "cuda"}));
  parser.add_flag("--json", options.json, "one JSON object a size");
}

namespace {

void check_operator(const BenchOptions& options) {
  if (!can_combine(options.dtype, options.op))
    throw UsageError(fmt::format("--op {}: {}", to_string(options.op), words_of_misfit(options.dtype, options.op)));
}

}  // namespace

void check(const BenchOptions& options, int ranks) {
  const auto collective = to_string(options.collective);
  check_operator(options);
  if (ranks < 1) throw UsageError(fmt::format("-n {}: a job has at least 1 rank", ranks));
  if (options.transport == "inproc" && !options.ranks) {
    throw UsageError("--transport inproc needs -n: its ranks are threads that the benchmark starts itself");
  }
  if (options.root < 0 || options.root >= ranks) {
    throw UsageError(fmt::format("--root {} is outside [0, {}), the ranks", options.root, ranks));
  }
  if (options.buffers != HostBuffers::own && options.device == "cuda") {
    throw UsageError(
        "--symmetric and --adopted are memory of the host that all its ranks map: it cannot be a GPU's (--device "
        "cuda)");
  }
  check_sizes(options);
  if (options.algorithm == Algorithm::automatic) return;
  const AlgorithmEntry* entry = find_algorithm(options.collective, options.algorithm);
  const std::string name(to_string(options.algorithm));
  const auto fitting = algorithms_of(options.collective, ranks, options.order);
  if (entry == nullptr) {
    throw UsageError(fmt::format("there is no {} by {}; there is {}", collective, name, fmt::join(fitting, ", ")));
  }
  if (options.order == Order::canonical && !entry->canonical && ranks > 2) {
    throw UsageError(
        fmt::format("{} cannot combine {} ranks in the canonical order. Say --order any to let it combine in its "
                    "own, or use one of {}",
                    name, ranks, fmt::join(fitting, ", ")));
  }
}

void check_reduce(const CLI::App& parser, const BenchOptions& options) {
  check_operator(options);
  constexpr std::string_view kMeant[] = {"collective", "--ranks", "--dtype",      "--op",     "--min",    "--max",
                                         "--factor",   "--sizes", "--iterations", "--rounds", "--device", "--json"};
  for (const CLI::Option* option : parser.get_options()) {
    if (option->count() > 0 && std::ranges::find(kMeant, option->get_name()) == std::end(kMeant))
      throw UsageError(
          fmt::format("{} says nothing of reduction: it is one process that combines n sources in the canonical order, "
                      "and no rank sends anything",
                      option->get_name()));
  }
  const int sources = options.ranks.value_or(2), most = static_cast<int>(cuda::kMaxSources);
  if (sources < 1 || sources > most)
    throw UsageError(fmt::format("-n {}: reduction has 1 to {} sources", sources, most));
  check_sizes(options);
}

void mention_rounding(const BenchOptions& options, int ranks) {
  if (!traits_of(options.collective).has_bytes()) return;
  const std::size_t unit = size_of(options.dtype) * parts_of(options.collective, ranks);
  const auto uneven = [&](std::uint64_t size) { return size % unit != 0; };
  const bool any = options.sizes.empty() ? uneven(options.min_bytes) : std::ranges::any_of(options.sizes, uneven);
  if (any)
    say_on_stderr(fmt::format("tutti bench: sizes are rounded down to multiples of {} bytes, whole elements{}\n", unit,
                              options.is_reduce ? "" : " on every rank"));
}

std::size_t parts_of(Collective collective, int ranks) {
  return static_cast<std::size_t>(traits_of(collective).buffer_rows(ranks));
}

std::vector<std::size_t> counts_to_measure(const BenchOptions& options, int ranks) {
  if (!traits_of(options.collective).has_bytes()) return {0};
  const std::size_t unit = size_of(options.dtype) * parts_of(options.collective, ranks);
  std::vector<std::uint64_t> sizes = options.sizes;
  if (sizes.empty()) {
    // From 0, which no factor enlarges, the next size is the smallest message there is.
    const auto next = [&](std::uint64_t size) { return size == 0 ? unit : size * options.factor; };
    // Nobody who asks for a range wants what rounding makes of its beginning: the message without bytes.
    const std::uint64_t first = options.min_bytes == 0 ? 0 : std::max<std::uint64_t>(options.min_bytes, unit);
    sizes.push_back(first);
    for (std::uint64_t size = next(first); size <= options.max_bytes; size = next(size)) sizes.push_back(size);
  }
  std::vector<std::size_t> counts;
  for (const std::uint64_t size : sizes) counts.push_back(size / unit);
  return counts;
}

bool is_on_one_gpu(const BenchOptions& options) { return options.device == "cuda" && options.transport == "inproc"; }

}  // namespace tutti::internal::tools
