// Where the spaces of a plan's steps lie for one call.
#pragma once

#include <cstddef>
#include <cstdint>

#include "executor/plan_step.h"

namespace tutti::internal {

class Spaces {
 public:
  Spaces() = default;
  Spaces(const std::byte* input, std::byte* output, std::byte* scratch) {
    base_[static_cast<int>(Space::input)] = reinterpret_cast<std::uintptr_t>(input);
    base_[static_cast<int>(Space::output)] = reinterpret_cast<std::uintptr_t>(output);
    base_[static_cast<int>(Space::scratch)] = reinterpret_cast<std::uintptr_t>(scratch);
  }
  std::byte* at(const Place& place) const {
    return reinterpret_cast<std::byte*>(base_[static_cast<int>(place.space)] + place.offset);
  }

 private:
  std::uintptr_t base_[3] = {};  // of each space: where its offset 0 lies; a buffer that the rank lacks may be null
};

}  // namespace tutti::internal
