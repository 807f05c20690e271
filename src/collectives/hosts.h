// Which ranks share a host, and who stands for a host where a slice crosses between hosts.
#pragma once

#include <vector>

#include "schedule/layout.h"

namespace tutti::internal {

class Hosts {
 public:
  explicit Hosts(const Layout& layout);

  // Hosts are numbered 0 .. count() - 1 in the order of their first ranks, whatever numbers the layout gives them.
  int count() const { return static_cast<int>(ranks_.size()); }
  int all_ranks() const { return static_cast<int>(host_.size()); }
  int of(int rank) const { return host_[rank]; }
  const std::vector<int>& ranks(int host) const { return ranks_[host]; }
  int most_ranks() const;

  // The other ranks of the host, beginning behind `rank`, so that no two ranks begin with the same one.
  std::vector<int> neighbours(int rank) const;

  // All other hosts than that of `rank`, beginning behind it.
  std::vector<int> others(int rank) const;

 private:
  std::vector<int> host_;                // by rank
  std::vector<std::vector<int>> ranks_;  // by host
};

// carriers[slice][host]: the one rank of the host that gets the slice from elsewhere, slice r being owned by rank r. On
// the owner's host that is the owner; on another its ranks take turns, so that they carry equally many.
using Carriers = std::vector<std::vector<int>>;
Carriers carriers_in_turn(const Hosts& hosts);

}  // namespace tutti::internal
