// Which rank is the hub for this one, and how it becomes that itself.
#include <algorithm>
#include <utility>

#include "control/seat.h"

namespace tutti::internal {

void Seat::connected(Clock::time_point now) {
  heard_ = now;
  is_enlisted_ = true;
  returns_to_.reset();
  for (const Notice& event : log_.behind(0)) outgoing_.push_back({hub_, event});
  outgoing_.push_back({hub_, Enlistment{log_.size()}});
  for (const ControlMessage& said : unsettled_) {
    outgoing_.push_back({hub_, said});
    if (auto* farewell = std::get_if<Farewell>(&outgoing_.back().message)) farewell->again = true;
  }
}

void Seat::called(int rank) {
  if (!is_hub() || rank < rank_) return;
  const bool is_sure = std::ranges::all_of(doubts_, [&](const auto& doubt) {
    const auto& [of, why] = doubt;
    return why.evidence == Evidence::kernel || is_of_one_host(of, rank_);
  });
  outgoing_.push_back({rank, Summons{is_sure}});
  // It may be of another host, and see an open connection to its hub.
  for (const auto& [of, doubt] : doubts_)
    if (doubt.evidence == Evidence::kernel && is_of_one_host(of, rank_)) outgoing_.push_back({rank, Death{of}});
}

// A rank that was silent for too long speaks again, and no later one has spoken as the hub. But if this rank has
// enlisted with a later one, which may be the hub already, it must hear nothing new from the earlier one: the later one
// would not know. It asks first to be forgotten there.
void Seat::return_to(int rank, Clock::time_point now) {
  const auto doubt = doubts_.find(rank);
  if (doubt == doubts_.end() || doubt->second.evidence != Evidence::silence || log_.is_gone(rank)) return;
  if (is_hub() || rank < spoken_ || (is_enlisted_ && !without_hub_since_)) return;
  if (is_enlisted_) {
    if (returns_to_ != rank) outgoing_.push_back({hub_, Withdrawal{}});
    returns_to_ = rank;
    return;
  }
  doubts_.erase(doubt);
  choose_hub(now);
}

void Seat::withdrawn(int from, Clock::time_point now) {
  if (from > rank_ && !is_hub()) {
    std::erase_if(held_, [&](const auto& said) { return said.first == from; });
    outgoing_.push_back({from, Withdrawal{}});
  } else if (from == hub_ && returns_to_ && without_hub_since_) {
    is_enlisted_ = false;
    const auto doubt = doubts_.find(*std::exchange(returns_to_, std::nullopt));
    if (doubt != doubts_.end() && doubt->second.evidence == Evidence::silence) doubts_.erase(doubt);
    choose_hub(now);
  }
}

// That rank knows that all before it are gone.
void Seat::follow(int rank, Clock::time_point now) {
  for (int lower = hub_; lower < rank; lower = log_.next_present(lower))
    doubt(lower, {died("as the next hub says"), Evidence::closing});
  choose_hub(now);
}

// That rank is on a side that is no majority. This side may be one.
void Seat::given_up_by_minority(int rank, Clock::time_point now) {
  if (log_.is_gone(rank)) return;
  const std::string why = "it goes on without the ranks that are left here, as it had no word of them for too long";
  if (is_hub()) {
    relay_->lose(rank, why, Evidence::gave_up, now);
    take_relayed();
  } else if (rank == hub_) {
    doubt_hub(why, Evidence::gave_up, now);
  } else if (rank < rank_) {
    doubt(rank, {why, Evidence::gave_up});
  }
}

// The better evidence counts.
void Seat::doubt(int rank, const Doubt& doubt) {
  const auto [known, is_new] = doubts_.try_emplace(rank, doubt);
  if (!is_new && doubt.evidence < known->second.evidence) known->second = doubt;
}

void Seat::doubt_hub(const std::string& why, Evidence evidence, Clock::time_point now) {
  if (!without_hub_since_) without_hub_since_ = now;
  doubt(hub_, {why, evidence});
  choose_hub(now);
}

// The lowest rank that is there and not doubted.
void Seat::choose_hub(Clock::time_point now) {
  if (is_over_) return;
  int next = log_.next_present(-1);
  while (next < rank_ && doubts_.contains(next)) next = log_.next_present(next);
  if (next == hub_) return;
  hub_ = next;
  is_enlisted_ = false;
  returns_to_.reset();
  heard_ = now;
  if (is_hub()) become_hub(now);
}

void Seat::become_hub(Clock::time_point now) {
  is_enlisted_ = true;
  relay_.emplace(rank_, hosts_, log_, std::exchange(farewells_, {}), pace_, now, false);
  for (const auto& [rank, doubt] : doubts_) relay_->lose(rank, doubt.why, doubt.evidence, now);
  for (const auto& [from, message] : std::exchange(held_, {})) relay_->received(from, message, now);
  for (const ControlMessage& said : unsettled_)
    if (!std::holds_alternative<Goodbye>(said)) relay_->received(rank_, said, now);
  relay_->tick(now);
  take_relayed();
}

}  // namespace tutti::internal
