#include "collectives/subtree.h"

#include "schedule/layout.h"

namespace tutti::internal {

Branch branch_of(int rank, int n, int root) {
  Branch branch{.own = {root, 0, n}};
  for (Subtree rest = branch.own; rest.size() > 1;) {
    const int split = canonical_split(rest.begin, rest.end);
    const Subtree below{rest.root, rest.begin, split}, above{rest.root, split, rest.end};
    const bool is_above = rest.root >= split;
    Subtree child = is_above ? below : above;
    child.root = child.begin;
    rest = is_above ? above : below;
    if (rank >= child.begin && rank < child.end) {
      if (rank == child.root) branch.parent = rest.root, branch.own = child;
      rest = child;
    } else if (rank == rest.root) {
      branch.children.push_back(child);
    }
  }
  return branch;
}

}  // namespace tutti::internal
