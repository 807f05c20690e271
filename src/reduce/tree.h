// The postfix tree over the sources of one reduction: checked, and cut into the pieces that the kernels evaluate.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "reduce/operands.h"

namespace tutti::internal {

// Partial results that may exist between two sources. The canonical tree over L leaves needs log2(L) of them.
inline constexpr std::size_t kMaxDepth = 32;

// Sources [first, first + size), all partial or all not, that form a canonical tree of their own (T[0, size)); its
// value is then combined `joins` times with what waits.
struct SourceGroup {
  std::uint32_t first;
  std::uint8_t size;
  std::uint8_t joins;
  bool partial;
};

// The sizes of groups, besides 1, that the CPU's kernels evaluate in registers. Largest first.
inline constexpr std::uint8_t kVectorSizes[] = {8, 4, 3, 2};

// Cuts greedily; of types whose partial results look like elements, `partial` is ignored (two_forms is false).
// Throws Error{invalid_argument} unless the joins describe one tree of at most kMaxDepth.
class Groups {
 public:
  Groups(std::span<const ReduceSource> sources, bool two_forms, std::span<const std::uint8_t> sizes = kVectorSizes) {
    // Two ranks and eight bytes: what this costs is seen.
    if (sources.size() == 2 && sources[0].joins == 0 && sources[1].joins == 1 &&
        sources[0].partial == sources[1].partial) {
      few_[size_++] = {0, 2, 0, sources[0].partial};
    } else {
      cut(sources, two_forms, sizes);
    }
  }
  std::span<const SourceGroup> get() const { return {size_ <= kFew ? few_ : many_.data(), size_}; }

 private:
  void cut(std::span<const ReduceSource> sources, bool two_forms, std::span<const std::uint8_t> sizes);
  void add(const SourceGroup& group);

  static constexpr std::size_t kFew = 16;
  SourceGroup few_[kFew]{};  // nothing is allocated for the common case
  std::vector<SourceGroup> many_;
  std::size_t size_ = 0;
};

}  // namespace tutti::internal
