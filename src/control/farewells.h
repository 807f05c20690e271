// Whether all ranks have made the same calls, found out as they leave a communicator: each says what it had called, and
// is compared with the first that left. Messages show most differences at once, since each carries its call. This finds
// the others, in calls that nobody answers: broadcasts, say, of which every rank believes itself to be the root.
//
// Of two ranks that differ the one that leaves later hears of it; nobody waits for anybody.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "control/message.h"

namespace tutti::internal {

class Farewells {
 public:
  // One more rank has left. The first that left the same communicator, if that one had made other calls.
  std::optional<Farewell> compare(const Farewell& farewell);

  // Of each communicator that not all ranks have left: the first that did.
  std::vector<Farewell> first() const;

 private:
  struct Entry {
    Farewell first;
    int left = 0;  // ranks
  };
  std::map<std::uint64_t, Entry> entries_;  // by communicator
};

}  // namespace tutti::internal
