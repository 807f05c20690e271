#include "collectives/hosts.h"

#include <algorithm>
#include <map>

namespace tutti::internal {

Hosts::Hosts(const Layout& layout) {
  std::map<int, int> numbers;
  for (int rank = 0; rank < layout.ranks(); ++rank) {
    const auto [found, is_new] = numbers.try_emplace(layout.host[rank], count());
    if (is_new) ranks_.emplace_back();
    host_.push_back(found->second);
    ranks_[found->second].push_back(rank);
  }
}

int Hosts::most_ranks() const {
  std::size_t most = 0;
  for (const auto& ranks : ranks_) most = std::max(most, ranks.size());
  return static_cast<int>(most);
}

std::vector<int> Hosts::neighbours(int rank) const {
  std::vector<int> all = ranks_[host_[rank]];
  const auto own = std::find(all.begin(), all.end(), rank);
  std::rotate(all.begin(), own, all.end());
  all.erase(all.begin());
  return all;
}

std::vector<int> Hosts::others(int rank) const {
  std::vector<int> hosts;
  for (int distance = 1; distance < count(); ++distance) hosts.push_back((host_[rank] + distance) % count());
  return hosts;
}

Carriers carriers_in_turn(const Hosts& hosts) {
  Carriers carriers(hosts.all_ranks(), std::vector<int>(hosts.count()));
  for (int host = 0; host < hosts.count(); ++host) {
    const std::vector<int>& ranks = hosts.ranks(host);
    std::size_t turn = 0;
    for (int slice = 0; slice < hosts.all_ranks(); ++slice)
      carriers[slice][host] = hosts.of(slice) == host ? slice : ranks[turn++ % ranks.size()];
  }
  return carriers;
}

}  // namespace tutti::internal
