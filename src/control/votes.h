// The votes that the hub has heard and that are not decided yet (struct Vote).
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "control/event_log.h"

namespace tutti::internal {

class Votes {
 public:
  void heard(int from, const Vote& vote, const EventLog& log) {
    if (log.has_decided(vote)) return;  // it was counted in that
    Open& open = open_[{vote.communicator, vote.on}];
    open.ranks = vote.ranks;
    if (open.voted.empty()) open.recalled.clear();
    open.recalled.erase(from);
    open.voted.insert(from);
    if (vote.has_made) open.made.insert(from);
  }

  // Takes the vote back. Returns the ranks that are there and have not voted. Those that have taken their vote back are
  // named only if there are no others: they may just be the first whose time was up.
  std::vector<std::int32_t> recall(int from, std::uint64_t communicator, Vote::On on, const EventLog& log) {
    const auto found = open_.find({communicator, on});
    if (found == open_.end()) return {};
    Open& open = found->second;
    open.made.erase(from);
    open.voted.erase(from);
    open.recalled.insert(from);
    std::vector<std::int32_t> absent, recalled;
    for (const std::int32_t rank : open.ranks)
      if (is_left(rank, log) && !open.voted.contains(rank) && rank != from)
        (open.recalled.contains(rank) ? recalled : absent).push_back(rank);
    return absent.empty() ? recalled : absent;
  }

  // What can be decided now, each once: Notice{decided}. Nobody who is suspected decides who goes on.
  template <class IsSuspected>
  std::vector<Notice> take_decided(const EventLog& log, IsSuspected&& is_suspected) {
    std::vector<Notice> decided;
    std::erase_if(open_, [&](const auto& entry) {
      const auto& [about, open] = entry;
      const auto& [communicator, on] = about;
      const bool goes_on = on == Vote::On::going_on;
      if (!goes_on && !log.can_make(communicator, open.ranks)) return true;
      std::vector<std::int32_t> left;
      for (const std::int32_t rank : open.ranks)
        if (is_left(rank, log)) left.push_back(rank);
      const bool all_have_voted = std::ranges::all_of(
          left, [&](int rank) { return open.voted.contains(rank) && !(goes_on && is_suspected(rank)); });
      if (!all_have_voted) return false;
      if (goes_on && !log.is_majority([](int) { return true; })) left.clear();
      if (!goes_on) std::erase_if(left, [&](int rank) { return !open.made.contains(rank); });
      decided.push_back(
          {.kind = Notice::Kind::decided, .communicator = communicator, .on = on, .ranks = std::move(left)});
      return true;
    });
    return decided;
  }

 private:
  struct Open {
    std::vector<std::int32_t> ranks;
    std::set<int> voted, made, recalled;
  };
  static bool is_left(std::int32_t rank, const EventLog& log) {
    return rank >= 0 && rank < log.ranks() && !log.is_gone(rank);
  }
  std::map<std::pair<std::uint64_t, Vote::On>, Open> open_;
};

}  // namespace tutti::internal
