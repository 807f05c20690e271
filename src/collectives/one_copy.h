// What a rank sends, copied first to where others can read it: for all of them once (Message::copies_once), or for one
// each (Message::copies_inputs).
#pragma once

#include <cstdint>
#include <map>
#include <utility>

#include "collectives/regions.h"
#include "schedule/builder.h"

namespace tutti::internal {

class OneCopy {
 public:
  OneCopy(Builder& builder, bool copies) : builder_(builder), copies_(copies) {}

  // Where to send `from` from: there, or from its copy, which this makes.
  Region of(const Region& from) {
    if (!copies_) return from;
    const auto [row, is_new] = rows_.try_emplace({from.row, from.slice}, 0);
    if (is_new) row->second = builder_.new_scratch_row();
    const Region copy = relay(row->second, static_cast<int>(from.slice), from.chunk);
    builder_.copy(from, copy);
    return copy;
  }

 private:
  Builder& builder_;
  const bool copies_;
  std::map<std::pair<std::uint16_t, std::uint32_t>, int> rows_;  // of scratch, by row and slice
};

}  // namespace tutti::internal
