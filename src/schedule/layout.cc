#include "schedule/layout.h"

#include <algorithm>
#include <numeric>

namespace tutti::internal {

int Layout::rank_of_leaf(int leaf) const {
  return static_cast<int>(std::upper_bound(first_leaf.begin(), first_leaf.end(), leaf) - first_leaf.begin()) - 1;
}

int Layout::hosts() const { return host.empty() ? 0 : *std::max_element(host.begin(), host.end()) + 1; }

Layout Layout::of(int ranks) {
  Layout layout;
  layout.first_leaf.resize(ranks + 1);
  std::iota(layout.first_leaf.begin(), layout.first_leaf.end(), 0);
  layout.host.assign(ranks, 0);
  return layout;
}

int canonical_split(int lo, int hi) {
  int m = 1;
  while (m * 2 < hi - lo) m *= 2;
  return lo + m;
}

}  // namespace tutti::internal
