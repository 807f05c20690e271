#include "run/meet_nodes.h"

#include <fmt/format.h>

#include <cstdlib>
#include <string>
#include <string_view>

#include "control/env.h"
#include "control/join_job.h"
#include "run/node_member.h"
#include "run/node_zero.h"
#include "tutti/error.h"

namespace tutti::internal::tools {
namespace {

// As a rank of the job has them: its secret, its interface, its times.
Settings settings_of(const Job& job) {
  Settings settings = internal::settings_from([](const char* name) -> const char* {
    const std::string_view which(name);
    if (which == "TUTTI_RANK") return "0";
    if (which == "TUTTI_SIZE") return "2";
    return which == "TUTTI_MASTER" ? ":1" : std::getenv(name);  // below it is said where they meet
  });
  settings = internal::within_clocks(settings);
  settings.rank = job.node_rank;
  settings.size = job.nodes;
  settings.master_address = job.master_address;
  settings.master_port = static_cast<std::uint16_t>(job.master_port + 1);
  return settings;
}

Meeting meeting_of(const Settings& settings) try {
  return internal::meet_at_master(settings);
} catch (const Error& error) {  // whose words are for ranks
  throw Error(error.code,
              std::string("the launchers, which meet at the port after that of the ranks, cannot: ") + error.what());
}

}  // namespace

std::unique_ptr<Nodes> meet_nodes(const Job& job) {
  if (!has_other_nodes(job)) return std::make_unique<NodeZero>(Course(1, job.max_restarts, ""));
  const Settings settings = settings_of(job);
  Meeting meeting = meeting_of(settings);
  const std::string options =
      fmt::format("--nnodes {} --nproc-per-node {} --max-restarts {}", job.nodes, job.ranks, job.max_restarts);
  if (job.node_rank > 0) return std::make_unique<NodeMember>(settings, std::move(meeting), options);
  return std::make_unique<NodeZero>(Course(job.nodes, job.max_restarts, options), settings, std::move(meeting));
}

}  // namespace tutti::internal::tools
