// Whom a rank has heard of while the hub is silent. The rank then asks others for signs of life: the next ranks behind
// the hub, and if it is one of these itself, all ranks. So the silences of several ranks pass at the same time, and not
// one after the other.
#pragma once

#include <algorithm>
#include <chrono>
#include <map>
#include <optional>
#include <set>

namespace tutti::internal {

class RollCall {
 public:
  using Time = std::chrono::steady_clock::time_point;

  // So many ranks behind the hub are asked by all others, and ask all others.
  static constexpr int kCandidates = 3;

  bool is_on() const { return rounds_ > 0; }
  // The ranks above have called meanwhile, if they miss the hub too.
  bool may_call_up() const { return rounds_ > 1; }
  void next_round() {
    ++rounds_;
    unreached_.clear();
  }
  // This rank slept until now: so much time counts against nobody.
  void slept(std::chrono::steady_clock::duration time, Time now) {
    for (auto* const times : {&asked_, &heard_})
      for (auto& [rank, when] : *times) when = std::min(now, when + time);
  }
  void end() { *this = RollCall(); }

  void asked(int rank, Time now) { asked_.try_emplace(rank, now); }
  void heard(int rank, Time now) {
    if (is_on()) heard_[rank] = now;
  }
  // When that rank has given its last sign of life, or since when it is asked for one in vain. Not asked at all: now.
  Time silent_since(int rank, Time now) const {
    const auto asked = asked_.find(rank), heard = heard_.find(rank);
    if (asked == asked_.end()) return now;
    return heard == heard_.end() ? asked->second : std::max(asked->second, heard->second);
  }

  // An attempt to connect to that rank has failed. It is not called again in this round.
  void not_reached(int rank) { unreached_.insert(rank); }
  bool may_reach(int rank) const { return !unreached_.contains(rank); }

 private:
  int rounds_ = 0;
  std::map<int, Time> asked_, heard_;
  std::set<int> unreached_;
};

}  // namespace tutti::internal
