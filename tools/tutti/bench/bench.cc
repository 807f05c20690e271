// tutti bench all_reduce -n 2: sweeps sizes, checks every result, prints the limit beside the figure.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <fstream>
#include <memory>
#include <stdexcept>

#include "bench/measure.h"
#include "bench/options.h"
#include "bench/reduce.h"
#include "bench/row_limit.h"
#include "bench/row_limit_gpu.h"
#include "bench/table.h"
#include "command.h"
#include "machine/gpu.h"
#include "machine/host.h"
#include "run/launch.h"
#include "tutti/communicator.h"

namespace tutti::internal::tools {
namespace {

void print(const std::string& text) {
  std::fputs(text.c_str(), stdout);
  std::fflush(stdout);
}

// How many ranks below this one are on its host. The kernel's boot id tells hosts apart. Collective.
std::size_t rank_of_host(Communicator& world) {
  std::string number;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> number;
  const std::uint64_t mine = digest(number.data(), number.size());
  std::vector<std::uint64_t> all(static_cast<std::size_t>(world.size()));
  world.all_gather(&mine, all.data(), 1, DType::uint64);
  return static_cast<std::size_t>(std::count(all.begin(), all.begin() + world.rank(), mine));
}

// Ranks that are threads share the first; processes take the host's in turn. Collective; starts CUDA.
BenchGpu gpu_for(Communicator& world, const BenchOptions& options) {
  const std::vector<cuda::Device> gpus = require_gpus();
  const std::size_t rank = rank_of_host(world);
  if (options.transport == "inproc") return {gpus.front()};
  return {gpus[rank % gpus.size()], gpus.size()};
}

// Measures all sizes on a rank that had `processors` to use before it was bound; rank 0 prints, and throws when a
// result was wrong.
void sweep(Communicator& world, const BenchOptions& options, const std::vector<std::size_t>& counts, Limit* limit,
           int processors) {
  const bool prints = world.rank() == 0;
  if (prints) mention_rounding(options, world.size());
  std::optional<BenchGpu> gpu;
  if (options.device == "cuda") gpu = gpu_for(world, options);
  if (prints && !options.json) print(table_head(options, world.size(), processors, gpu));
  const auto device = gpu ? std::optional(gpu->device.index) : std::nullopt;
  Bench bench(world, options, std::ranges::max(counts), device);
  const auto copies = gpu ? gpu_limit(world, options, bench.buffers(), *device) : nullptr;
  std::uint64_t wrong = 0;
  for (const std::size_t count : counts) {
    const std::size_t bytes = count * size_of(options.dtype) * parts_of(options.collective, world.size());
    std::optional<double> limit_us = limit != nullptr ? limit->measure_us(bytes) : std::nullopt;
    world.barrier();  // where the other ranks sleep while rank 0 has the limit measured
    if (copies != nullptr) limit_us = std::max(limit_us, copies->measure_us(bytes));  // the slower; nothing is less
    BenchRow row = bench.measure(count);
    row.limit_us = limit_us;
    wrong += row.wrong.value_or(0);
    if (prints) print(options.json ? json_row(row, options, world.size()) : table_row(row, options, world.size()));
  }
  if (!prints) return;
  if (wrong > 0) throw std::runtime_error(fmt::format("{} elements were wrong", wrong));
  if (!options.json) print(fmt::format("# {} size{}, 0 wrong\n", counts.size(), counts.size() == 1 ? "" : "s"));
}

// The processes that measure the limit; they are to be started before this process has threads.
std::unique_ptr<Limit> start_limit(const BenchOptions& options, int ranks, const std::vector<std::size_t>& counts,
                                   const std::vector<topology::Processors>& places) {
  const std::size_t bytes = std::ranges::max(counts) * size_of(options.dtype) * parts_of(options.collective, ranks);
  auto loops = loops_for(options, ranks, bytes);
  if (loops == nullptr) return nullptr;
  return std::make_unique<Limit>(std::move(loops), places, options.rounds, static_cast<std::size_t>(options.iterations),
                                 options.round_ms * 1e3);
}

int run_as_threads(const BenchOptions& options) {
  const int ranks = *options.ranks;
  const int processors = topology::usable_processors();
  require_room(ranks);
  const auto counts = counts_to_measure(options, ranks);
  const auto places = places_for(ranks);
  const auto limit = start_limit(options, ranks, counts, places);
  const auto body = [&](Communicator& world) {
    topology::run_on(places[static_cast<std::size_t>(world.rank())]);
    sweep(world, options, counts, world.rank() == 0 ? limit.get() : nullptr, processors);
  };
  Communicator::run_threads(ranks, body, options.transport);
  return 0;
}

int run_as_rank(const BenchOptions& options) {
  Settings settings = Settings::from_env();
  settings.transport = options.transport;
  const int processors = topology::usable_processors();
  check(options, settings.size);
  const auto counts = counts_to_measure(options, settings.size);
  std::unique_ptr<Limit> limit;
  if (options.ranks) {
    const auto places = places_for(settings.size);
    if (settings.rank == 0) limit = start_limit(options, settings.size, counts, places);
    topology::run_on(places[static_cast<std::size_t>(settings.rank)]);
  }
  Communicator world = Communicator::join(settings);
  sweep(world, options, counts, limit.get(), processors);
  return 0;
}

int run(const BenchOptions& options) {
  if (options.ranks) check(options, *options.ranks);
  // CUDA does not outlive a fork: whoever still has to start processes leaves it to them.
  const bool has_threads = options.transport == "inproc" && options.ranks;
  if (options.device == "cuda" && (has_threads || is_launcher(options.ranks))) require_gpu_of_children();
  if (options.transport == "inproc") return run_as_threads(options);
  // Each binds itself, as the launcher would: rank 0 must first start the processes of the limit on all cores.
  if (const auto status = launch_self("tutti bench", options.ranks, Bind::none)) return *status;
  return run_as_rank(options);
}

}  // namespace

Subcommand add_bench(CLI::App& app) {
  CLI::App* parser = app.add_subcommand(
      "bench", "Measure a collective, or a reduction alone, beside this machine's limit, and check the results");
  auto options = std::make_shared<BenchOptions>();
  describe(*parser, *options);
  return {parser, [options, parser] {
            if (options->is_reduce) {
              check_reduce(*parser, *options);
              return run_bench_reduce(*options);
            }
            if (parser->count("--transport") == 0) options->transport = Settings::from_env().transport;
            return run(*options);
          }};
}

}  // namespace tutti::internal::tools
