// Which ranks of a communicator go on after a loss. A communicator is shrunk once all of its ranks that are there have
// said that they are ready, and none of these is suspected.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <vector>

#include "control/event_log.h"
#include "control/message.h"

namespace tutti::internal {

class GoingOn {
 public:
  void is_ready(int rank, const Shrink& shrink, const EventLog& log) {
    if (shrink.decided < log.shrinkings_of(shrink.communicator)) return;  // said before that was decided
    Waiting& one = waiting_[shrink.communicator];
    one.ranks = shrink.ranks;
    one.ready.insert(rank);
  }

  // What can be decided now, each once: Notice{shrunk}.
  template <class IsSuspected>
  std::vector<Notice> take_decided(const EventLog& log, IsSuspected&& is_suspected) {
    std::vector<Notice> decided;
    for (auto next = waiting_.begin(); next != waiting_.end();) {
      const auto& [communicator, one] = *next;
      std::vector<std::int32_t> left;
      for (const std::int32_t rank : one.ranks)
        if (rank >= 0 && rank < log.ranks() && !log.is_gone(rank)) left.push_back(rank);
      if (!std::ranges::all_of(left, [&](int rank) { return one.ready.contains(rank) && !is_suspected(rank); })) {
        ++next;
        continue;
      }
      if (!log.is_majority([](int) { return true; })) left.clear();
      decided.push_back({.kind = Notice::Kind::shrunk, .communicator = communicator, .ranks = std::move(left)});
      next = waiting_.erase(next);
    }
    return decided;
  }

 private:
  struct Waiting {
    std::vector<std::int32_t> ranks;  // all of the communicator
    std::set<int> ready;
  };
  std::map<std::uint64_t, Waiting> waiting_;  // by communicator
};

}  // namespace tutti::internal
