// Who takes part: ranks, the leaves they hold, and which of them share a host.
#pragma once

#include <vector>

namespace tutti::internal {

// Leaves are the inputs of a reduction, numbered 0 .. leaves()-1; rank r holds the consecutive leaves
// [first_leaf[r], first_leaf[r + 1]). The canonical order is over leaves, so it does not depend on how they are spread.
struct Layout {
  std::vector<int> first_leaf;  // ranks() + 1 entries, ascending from 0
  std::vector<int> host;        // host[r]: ranks with equal numbers share a host

  int ranks() const { return static_cast<int>(host.size()); }
  int leaves() const { return first_leaf.back(); }
  int leaves_of(int rank) const { return first_leaf[rank + 1] - first_leaf[rank]; }
  int rank_of_leaf(int leaf) const;
  bool one_leaf_each() const { return leaves() == ranks(); }
  int hosts() const;

  static Layout of(int ranks);  // one leaf a rank, all on one host
};

// The canonical tree T over leaves [lo, hi): where it splits. m = lo + the largest power of two smaller than hi - lo.
// Requires hi - lo >= 2.
int canonical_split(int lo, int hi);

}  // namespace tutti::internal
