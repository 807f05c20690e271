// What is asked of an algorithm's arguments before it is called. All throw Error{invalid_argument} that names the
// algorithm.
#pragma once

#include <string_view>

#include "collectives/message.h"
#include "schedule/layout.h"

namespace tutti::internal {

// Slices, chunks, rows and sources are numbered in 16 bits: a schedule has at most this many of each.
inline constexpr int kMaxRegions = 65535;

// rank, root and chunks exist; ranks and leaves can be numbered; leaves ascend.
void require_valid(std::string_view algorithm, int rank, const Layout& layout, const Message& message);

void require_one_leaf_each(std::string_view algorithm, const Layout& layout);

}  // namespace tutti::internal
