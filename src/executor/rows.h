// How long the rows of a call are, and where a rank's buffers have them.
#pragma once

#include <algorithm>
#include <cstddef>

#include "schedule/schedule.h"
#include "types/call_rows.h"
#include "types/collective.h"

namespace tutti::internal {

// Of a message whose slices are rows (types/collective.h). In elements.
class Rows {
 public:
  // All of `count` elements, beginning `stride` apart.
  Rows(const Distribution& holds, int rank, std::size_t count, std::size_t stride)
      : in_(holds.input(rank)), out_(holds.output(rank)), count_(count), stride_(stride) {}
  // Those of a call, which outlives this.
  Rows(const Distribution& holds, int rank, const CallRows& rows)
      : in_(holds.input(rank)), out_(holds.output(rank)), rows_(&rows) {}

  // 0 of a row of unknown length: the rank has nothing to do with it.
  std::size_t length(int slice) const {
    if (rows_ == nullptr) return count_;
    if (in_.holds(slice)) return rows_->input.counts[index(in_, slice)];
    return out_.holds(slice) ? rows_->output.counts[index(out_, slice)] : 0;
  }
  // Behind the beginning of the rank's input or output, which holds the row.
  std::size_t begin(Space space, int slice) const {
    const std::size_t i = index(space == Space::input ? in_ : out_, slice);
    if (rows_ == nullptr) return i * stride_;
    return (space == Space::input ? rows_->input : rows_->output).begins[i];
  }

 private:
  static std::size_t index(const RowRange& range, int slice) { return static_cast<std::size_t>(range.index(slice)); }

  RowRange in_, out_;
  std::size_t count_ = 0, stride_ = 0;
  const CallRows* rows_ = nullptr;
};

}  // namespace tutti::internal
