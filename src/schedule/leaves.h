// Which leaves a collective combines.
#pragma once

#include "schedule/layout.h"
#include "types/collective.h"

namespace tutti::internal {

// How many inputs a rank has: one a leaf where leaves are combined, else one.
inline int inputs_of(const Layout& layout, Collective collective, int rank) {
  return traits_of(collective).combines() ? layout.leaves_of(rank) : 1;
}

// The leaves [0, this) are what the rank's output combines.
inline int combined_leaves(const Layout& layout, Collective collective, int rank) {
  switch (traits_of(collective).result) {
    case Result::prefix: return layout.first_leaf[rank + 1];
    case Result::prefix_before: return layout.first_leaf[rank];
    default: return layout.leaves();
  }
}

}  // namespace tutti::internal
