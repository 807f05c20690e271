// Whether all ranks have made the same calls, found out as they leave a communicator: each says what it had called, and
// is compared with the first that left. Messages show most differences at once, since each carries its call. This finds
// the others, in calls that nobody answers: broadcasts, say, of which every rank believes itself to be the root; or a
// message that one rank sent, and that the other one never looked for.
//
// If two ranks differ, the one that leaves later hears of it, and so do all that are still there. Nobody waits for
// anybody.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "control/message.h"

namespace tutti::internal {

// The first calls of the same number in which two ranks differ, as far as their rows tell; all zero: the rank had made
// none of that number. Else the last of each.
std::pair<Tag, Tag> first_difference(const Farewell& one, const Farewell& other);

class Farewells {
 public:
  // One more rank has left. A rank that left before, if it had made other calls: of the same communicator, or of a lane
  // to the rank that leaves now, which this one never made.
  std::optional<Farewell> compare(const Farewell& farewell);

  // What the rank that is asked would answer, if it has left the communicator of the question, or that of which it is a
  // lane.
  std::optional<Notice> answer_to(const Probe& probe) const;

  // Of each communicator that not all ranks have left: the first that did.
  std::vector<Farewell> first() const;

 private:
  struct Heard {
    std::uint64_t communicator;
    int rank;
    std::optional<Farewell> verdict;
  };
  struct Entry {
    Farewell first;  // of it, `done` is kept
    int left = 0;    // ranks
  };
  std::optional<Farewell> compare_whole(const Farewell& farewell);
  std::optional<Farewell> compare_lane(const Farewell& farewell);
  std::optional<Farewell> take_lanes_to(int rank, std::uint64_t whole);
  const CallAccount* account_of(int rank, std::uint64_t communicator) const;

  std::map<std::uint64_t, Entry> entries_;  // by communicator
  static constexpr std::size_t kRemembered = 1024;
  std::deque<Heard> heard_;  // the last ones, for those that are said again
  // Lanes that one end has left: by the communicator that they are part of, the other end, and their own number.
  std::map<std::tuple<std::uint64_t, int, std::uint64_t>, Farewell> lanes_;
};

}  // namespace tutti::internal
