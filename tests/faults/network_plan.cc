#include "faults/network_plan.h"

#include <algorithm>

#include "faults/dice.h"

namespace tutti::internal {

using std::chrono::milliseconds;

NetworkPlan NetworkPlan::draw(unsigned seed) {
  FaultDice dice(seed + 1'000'000);
  NetworkPlan plan{
      .job = {.seed = seed,
              .wire = "hosts",
              .ranks = 2 + dice.below(7),
              .hosts = {},
              .is_without_zero = false,
              .blows = {},
              .then = {}},
      .cut = dice.one_of<NetworkCut>({NetworkCut::down, NetworkCut::lost, NetworkCut::lost, NetworkCut::one_way}),
      .host = dice.below(2),
      .at = milliseconds(1 + dice.below(150)),
      .lasts = {}};
  FaultPlan& job = plan.job;
  job.is_without_zero = job.ranks > 2 && dice.percent(20);
  for (int rank = 0; rank < job.ranks; ++rank) job.hosts.push_back(rank == 0 ? 0 : dice.below(2));
  // Each host has a rank of the communicator.
  const int first = job.is_without_zero ? 1 : 0;
  const bool is_one_sided =
      std::all_of(job.hosts.begin() + first, job.hosts.end(), [&](int host) { return host == job.hosts.back(); });
  if (is_one_sided) job.hosts.back() = 1 - job.hosts.back();
  job.then.assign(static_cast<std::size_t>(job.ranks), "shrink");
  const int kind = dice.below(100);
  const auto silence = static_cast<int>(kSilence.count());
  if (kind < 30)  // far from the silence: TCP sends again some time later, and a rank may be late, too
    plan.lasts = milliseconds(silence / 20 + dice.below(silence / 8));
  else if (kind < 45)
    plan.lasts = milliseconds(silence * 35 / 100 + dice.below(215 * silence / 100));
  else if (kind < 60)
    plan.lasts = milliseconds(5 * silence / 2 + dice.below(silence));
  // Rank 0 leaves within 0.1 s. A side that has not heard so counts it among those that it cannot reach.
  if (job.is_without_zero && !plan.is_short()) plan.at += milliseconds(silence / 2);
  job.blows.push_back({Fault::kill, first + dice.below(job.ranks - first), milliseconds(0)});
  return plan;
}

bool NetworkPlan::goes_on_at(int host) const {
  const int first = job.is_without_zero ? 1 : 0;
  const auto here = 2 * std::count(job.hosts.begin() + first, job.hosts.end(), host);
  const int all = job.ranks - first;
  return here > all || (here == all && job.hosts[static_cast<std::size_t>(first)] == host);
}

std::string NetworkPlan::ranks_at(int host) const {
  std::string text;
  for (int rank = job.is_without_zero ? 1 : 0; rank < job.ranks; ++rank)
    if (job.hosts[static_cast<std::size_t>(rank)] == host) text += (text.empty() ? "" : " ") + std::to_string(rank);
  return text;
}

std::string NetworkPlan::text() const {
  std::string text = "seed " + std::to_string(job.seed) + ", " + std::to_string(job.ranks) + " ranks of the hosts ";
  for (const int host : job.hosts) text += std::to_string(host);
  if (job.is_without_zero) text += ", rank 0 leaves";
  text += "; " + std::to_string(at.count()) + " ms: ";
  if (cut == NetworkCut::down) text += "the interface of host " + std::to_string(host) + " is down";
  if (cut == NetworkCut::lost) text += "all between the hosts is lost";
  if (cut == NetworkCut::one_way) text += "what host " + std::to_string(host) + " sends is lost";
  return text + (lasts.count() == 0 ? ", for good" : " for " + std::to_string(lasts.count()) + " ms");
}

}  // namespace tutti::internal
