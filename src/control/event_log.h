// What has become of the job's ranks and communicators, in the order in which the hub has decided it. Each rank keeps
// the same log, or the beginning of it. So the first event that concerns a communicator is the same on every rank.
//
// Events that all ranks know are forgotten. What they say of ranks and of failures is kept.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "control/control.h"

namespace tutti::internal {

class EventLog {
 public:
  explicit EventLog(int ranks) : states_(static_cast<std::size_t>(ranks), State::present) {}

  std::uint32_t size() const { return forgotten_ + static_cast<std::uint32_t>(events_.size()); }
  int ranks() const { return static_cast<int>(states_.size()); }

  // False: it is not the next event, or no event at all.
  bool append(const Notice& event) {
    if (event.serial != size() + 1 || event.peer < 0 || event.peer >= ranks()) return false;
    switch (event.kind) {
      case Notice::Kind::lost:
        state(event.peer) = event.authority == Authority::kernel ? State::dead : State::expelled;
        losses_.emplace(event.peer, Loss{event.authority, event.message});
        break;
      case Notice::Kind::left: state(event.peer) = State::left; break;
      case Notice::Kind::decided: break;
      case Notice::Kind::poisoned: failed_.insert(event.communicator); break;
      default: return false;
    }
    events_.push_back(event);
    return true;
  }
  // The events behind the first `known`, if none of these is forgotten.
  std::span<const Notice> behind(std::uint32_t known) const {
    return std::span(events_).subspan(std::min<std::size_t>(known - std::min(known, forgotten_), events_.size()));
  }
  std::uint32_t forgotten() const { return forgotten_; }
  // The first `known` events.
  void forget(std::uint32_t known) {
    const std::uint32_t more = std::min(known, size()) - std::min(known, forgotten_);
    events_.erase(events_.begin(), events_.begin() + more);
    forgotten_ += more;
  }

  bool is_gone(int rank) const { return state(rank) != State::present; }
  bool is_lost(int rank) const { return state(rank) == State::dead || state(rank) == State::expelled; }
  bool has_left(int rank) const { return state(rank) == State::left; }
  // It may live, and count in what is no majority: it is there, or it was given up without the proof of its death.
  bool may_live(int rank) const { return state(rank) == State::present || state(rank) == State::expelled; }
  // Whether the ranks that are there, and for which `is_here` holds, are more than half of those that may live, or half
  // of them and the lowest.
  template <class IsHere>
  bool is_majority(IsHere&& is_here) const {
    int living = 0, here = 0;
    bool has_lowest = false;
    for (int rank = 0; rank < ranks(); ++rank) {
      if (!may_live(rank)) continue;
      const bool counts = !is_gone(rank) && is_here(rank);
      if (++living == 1) has_lowest = counts;
      if (counts) ++here;
    }
    return 2 * here > living || (2 * here == living && has_lowest);
  }
  // Behind the events that the voter knew. All ranks know what is forgotten: so no vote of before can still come.
  bool has_decided(const Vote& vote) const {
    return std::ranges::any_of(behind(vote.known), [&](const Notice& event) {
      return event.kind == Notice::Kind::decided && event.communicator == vote.communicator && event.on == vote.on;
    });
  }
  // Whether all of `ranks` can still make something together.
  bool can_make(std::uint64_t communicator, std::span<const std::int32_t> ranks) const {
    return !has_failed(communicator) && std::ranges::all_of(ranks, [this](std::int32_t rank) {
      return rank >= 0 && rank < this->ranks() && !is_gone(rank);
    });
  }
  bool has_failed(std::uint64_t communicator) const { return failed_.contains(communicator); }

  struct Loss {
    Authority authority = Authority::majority;
    std::string why = {};
  };
  Loss loss_of(int rank) const {
    const auto loss = losses_.find(rank);
    return loss == losses_.end() ? Loss() : loss->second;
  }

  bool is_only(int rank) const { return next_present(-1) == rank && next_present(rank) == ranks(); }  // that is there
  // The lowest rank behind `rank` that is present; ranks() if there is none.
  int next_present(int rank) const {
    do ++rank;
    while (rank < ranks() && is_gone(rank));
    return rank;
  }

 private:
  enum class State : std::uint8_t { present, left, dead, expelled };
  State& state(int rank) { return states_[static_cast<std::size_t>(rank)]; }
  State state(int rank) const { return states_[static_cast<std::size_t>(rank)]; }

  std::vector<State> states_;  // by rank
  std::uint32_t forgotten_ = 0;
  std::vector<Notice> events_;      // the later ones
  std::map<int, Loss> losses_;      // of the ranks that are lost
  std::set<std::uint64_t> failed_;  // communicators
};

}  // namespace tutti::internal
