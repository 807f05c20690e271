// Short names for the regions that algorithms speak of.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "schedule/schedule.h"

namespace tutti::internal {

inline Region region_of(Space space, int row, int slice, int chunk) {
  return {space, static_cast<std::uint16_t>(row), static_cast<std::uint32_t>(slice), static_cast<std::uint16_t>(chunk)};
}
inline Region input(int slice = 0, int chunk = 0) { return region_of(Space::input, 0, slice, chunk); }
inline Region output(int slice = 0, int chunk = 0) { return region_of(Space::output, 0, slice, chunk); }
// Of a message of rows from each of n ranks to each: the row from one to another.
inline int row_between(int from, int to, int n) { return from * n + to; }
inline Region scratch(int row, int slice = 0, int chunk = 0) { return region_of(Space::scratch, row, slice, chunk); }
inline Region relay(int row, int slice, int chunk = 0) { return region_of(Space::relay, row, slice, chunk); }
// The rows of these slices, side by side from that of the first on, which lies in `row`. There must be one at least.
inline Extent relays(int row, const std::vector<int>& slices) {
  return {relay(row, slices.front()), {slices.begin() + 1, slices.end()}};
}
// The rows of slices [first.slice, end), side by side.
inline Extent up_to(const Region& first, int end) {
  std::vector<std::uint32_t> further;
  for (std::uint32_t slice = first.slice + 1; slice < static_cast<std::uint32_t>(end); ++slice)
    further.push_back(slice);
  return {first, std::move(further)};
}

}  // namespace tutti::internal
