// How elements are cut into slices and slices into chunks: the one place where indices become element ranges.
#pragma once

#include <algorithm>
#include <cstddef>

namespace tutti::internal {

struct ElementRange {
  std::size_t begin = 0;
  std::size_t end = 0;  // half open
  std::size_t size() const { return end - begin; }
};

// count elements; slice s of S is [b(s), b(s + 1)) with b(s) = min(count, roundup(count * s / S, grain)), and chunks
// cut a slice the same way. grain 1 gives exact slices. Empty slices and chunks are normal. Where there are more
// slices, as there are of rows from each rank to each, `count` is that of a rank's buffer, and slice s is as long as s
// mod S.
struct Partition {
  std::size_t count = 0;
  std::size_t slices = 1;
  std::size_t chunks = 1;
  std::size_t slice_grain = 1;  // elements
  std::size_t chunk_grain = 1;

  static std::size_t bound(std::size_t count, std::size_t parts, std::size_t part, std::size_t grain) {
    // count * part / parts without overflow
    const std::size_t at = count / parts * part + count % parts * part / parts;
    return std::min(count, (at + grain - 1) / grain * grain);
  }
  ElementRange slice(std::size_t s) const {
    return {bound(count, slices, s % slices, slice_grain), bound(count, slices, s % slices + 1, slice_grain)};
  }
  ElementRange chunk(std::size_t s, std::size_t c) const {
    const ElementRange whole = slice(s);
    return {whole.begin + bound(whole.size(), chunks, c, chunk_grain),
            whole.begin + bound(whole.size(), chunks, c + 1, chunk_grain)};
  }
};

}  // namespace tutti::internal
