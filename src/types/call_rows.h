// The rows of a call whose rows are not all of one length: what one rank knows of them.
#pragma once

#include <algorithm>
#include <compare>
#include <cstddef>
#include <numeric>
#include <vector>

namespace tutti::internal {

// Of one buffer, in the order of types/collective.h. In elements.
struct BufferRows {
  std::vector<std::size_t> counts;
  std::vector<std::size_t> begins;  // behind the beginning of the buffer; as many

  // Elements of all rows; and from the beginning of the buffer to the end of its last row.
  std::size_t total() const { return std::accumulate(counts.begin(), counts.end(), std::size_t{0}); }
  std::size_t extent() const {
    std::size_t end = 0;
    for (std::size_t i = 0; i < counts.size(); ++i)
      if (counts[i] > 0) end = std::max(end, begins[i] + counts[i]);
    return end;
  }
  friend auto operator<=>(const BufferRows&, const BufferRows&) = default;
};

struct CallRows {
  BufferRows input, output;
  friend auto operator<=>(const CallRows&, const CallRows&) = default;
};

}  // namespace tutti::internal
