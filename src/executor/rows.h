// How long the rows of a call are, and where a rank's buffers have them.
#pragma once

#include <cstddef>

#include "schedule/schedule.h"
#include "types/collective.h"

namespace tutti::internal {

// Of a message whose slices are rows (types/collective.h). In elements.
class Rows {
 public:
  // All of `count` elements, beginning `stride` apart.
  Rows(const Distribution& holds, int rank, std::size_t count, std::size_t stride)
      : holds_(holds), rank_(rank), count_(count), stride_(stride) {}

  std::size_t length(int /*slice*/) const { return count_; }
  // Behind the beginning of the rank's input or output, which holds the row.
  std::size_t begin(Space space, int slice) const {
    const RowRange range = space == Space::input ? holds_.input(rank_) : holds_.output(rank_);
    return static_cast<std::size_t>(range.index(slice)) * stride_;
  }

 private:
  Distribution holds_;
  int rank_;
  std::size_t count_, stride_;
};

}  // namespace tutti::internal
