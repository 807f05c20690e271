// Who talks to whom.
#pragma once

#include <vector>

namespace tutti::internal {

// All other ranks of n, beginning behind `rank`: when everyone talks to everyone, no two ranks begin with the same
// peer.
inline std::vector<int> peers_after(int rank, int n) {
  std::vector<int> peers;
  for (int distance = 1; distance < n; ++distance) peers.push_back((rank + distance) % n);
  return peers;
}

// The binomial tree rooted at 0: a rank's parent has the rank's lowest set bit cleared.
inline int binomial_parent(int rank) { return rank & (rank - 1); }

// The largest subtree first, for it has the longest way to go.
inline std::vector<int> binomial_children(int rank, int n) {
  int bit = 1;
  while (bit < n && (rank & bit) == 0) bit *= 2;
  std::vector<int> children;
  for (bit /= 2; bit > 0; bit /= 2)
    if (rank + bit < n) children.push_back(rank + bit);
  return children;
}

}  // namespace tutti::internal
