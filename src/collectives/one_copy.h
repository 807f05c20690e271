// What a rank sends to several others, copied once to where all of them can read it if Message::copies_once says so.
#pragma once

#include "collectives/message.h"
#include "collectives/regions.h"
#include "schedule/builder.h"

namespace tutti::internal {

class OneCopy {
 public:
  OneCopy(Builder& builder, const Message& message)
      : builder_(builder), copies_(message.copies_once), row_(copies_ ? builder.new_scratch_row() : 0) {}

  // Where to send `from` from: there, or from its copy, which this makes.
  Region of(const Region& from) {
    if (!copies_) return from;
    const Region copy = relay(row_, static_cast<int>(from.slice), from.chunk);
    builder_.copy(from, copy);
    return copy;
  }

 private:
  Builder& builder_;
  const bool copies_;
  const int row_;
};

}  // namespace tutti::internal
