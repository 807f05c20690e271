// Short names for the regions that algorithms speak of.
#pragma once

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

}  // namespace tutti::internal
