// tutti run -n 4 ./prog …: starts ranks on this host.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdlib>
#include <memory>

#include "command.h"
#include "net/network.h"
#include "run/launch.h"

namespace tutti::internal::tools {
namespace {

constexpr int kDefaultPort = 29500;  // torchrun's
constexpr int kMaxPort = 65535;      // the launchers of several hosts use the one after the master's too
constexpr int kMaxRanks = 65536;

struct Options {
  int ranks = 1;
  int nodes = 1;
  int node_rank = 0;
  std::string master_address;
  int master_port = 0;
  int max_restarts = 0;
  bool keep_going = false;
  std::string bind;
  bool tag = false;
};

int run_job(const Options& options, std::vector<std::string> program) {
  if (!program.empty() && program.front().starts_with("-")) {
    throw UsageError(fmt::format("there is no option {}; try tutti run --help", program.front()));
  }
  Job job;
  job.name = "tutti run";
  job.argv = std::move(program);
  job.ranks = options.ranks;
  job.master_port = options.master_port;
  if (!options.bind.empty()) job.bind = options.bind == "core" ? Bind::core : Bind::none;
  job.tag = options.tag;
  job.max_restarts = options.max_restarts;
  job.keep_going = options.keep_going;
  job.master_address = internal::without_brackets(options.master_address);
  if (options.nodes > 1) {
    if (options.node_rank >= options.nodes) {
      throw UsageError(
          fmt::format("--node-rank {} is outside [0, {}), the nodes of this job", options.node_rank, options.nodes));
    }
    if (options.master_address.empty()) {
      throw UsageError("several nodes need --master-addr: the address of node 0, as the others reach it");
    }
    const long size = static_cast<long>(options.ranks) * options.nodes;
    if (size > kMaxRanks) {
      throw UsageError(fmt::format("{} ranks are more than the {} that a job can have", size, kMaxRanks));
    }
    job.nodes = options.nodes;
    job.node_rank = options.node_rank;
    job.first_rank = options.node_rank * options.ranks;
    job.size = static_cast<int>(size);
    job.make_secret = false;  // it must be the same on every node: the library finds it, or says where it looked
    if (job.master_port == 0) job.master_port = kDefaultPort;
    if (job.max_restarts > 0 && job.master_port == kMaxPort) {
      throw UsageError(fmt::format(
          "--master-port {} leaves no port after it, which the launchers need for --max-restarts", kMaxPort));
    }
  }
  return launch(job);
}

}  // namespace

Subcommand add_run(CLI::App& app) {
  CLI::App* run = app.add_subcommand("run", "Start the ranks of a job on this host");
  auto options = std::make_shared<Options>();
  run->add_option("-n,--nproc-per-node", options->ranks, "ranks on this host")->check(whole_number(1));
  run->add_option("--nnodes", options->nodes, "hosts of the job")->check(whole_number(1, kMaxRanks));
  run->add_option("--node-rank", options->node_rank, "this host's number, from 0")->check(whole_number(0));
  run->add_option("--master-addr", options->master_address, "address of host 0; needed for several hosts");
  run->add_option("--master-port", options->master_port, "port of rank 0; 0: a free one (29500 for several hosts)")
      ->check(whole_number(0, kMaxPort));
  run->add_option("--max-restarts", options->max_restarts,
                  "start all ranks of the job again this many times after a failure; every launcher of the job needs "
                  "the same number")
      ->check(whole_number(0));
  run->add_flag(
         "--keep-going", options->keep_going,
         "a rank that fails does not end the others: for programs that go on by shrink(). The exit status is 0 if a "
         "rank of this host has ended well")
      ->excludes("--max-restarts");
  run->add_option(
         "--bind", options->bind,
         "core: each rank on a core of its own, next to its neighbours; where there are too few, on a hardware "
         "thread each, or else several on a core. none: where the system puts them. Unless said: core if there are a "
         "core for each of several ranks and no affinity narrower than the container's, else none")
      ->check(CLI::IsMember({"none", "core"}));
  run->add_flag(
      "--tag", options->tag,
      "begin each line of output with its rank. A line ends at \\n or \\r, or after 64 KiB; one that does not is shown "
      "after a tenth of a second of silence. Ranks wait for a reader that is slow; when they have been "
      "stopped, it has two more seconds between its reads");
  run->prefix_command();  // all from the program's name on is the program's
  return {run, [options, run] { return run_job(*options, run->remaining()); }};
}

}  // namespace tutti::internal::tools
