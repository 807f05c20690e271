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

bool Seat::wants(int rank) const {
  if (is_over_ || rank == rank_ || log_.is_gone(rank)) return false;
  if (is_hub()) return relay_->misses(rank);
  const bool may_be_hub = rank < rank_ && !doubts_.contains(rank);
  return (may_be_hub && (rank == hub_ || without_hub_since_)) || (is_asked(rank) && roll_call_.may_reach(rank));
}

void Seat::reached(int rank, Clock::time_point now) {
  roll_call_.heard(rank, now);
  if (is_hub()) relay_->received(rank, LifeSign{}, now);
}

void Seat::called(int rank) {
  if (!is_hub() || rank < rank_) return;
  outgoing_.push_back({rank, Summons{is_sure_to_be_hub()}});
  // It may be of another host, and see an open connection to its hub.
  for (const auto& [of, doubt] : doubts_)
    if (doubt.evidence == Evidence::kernel && is_of_one_host(of, rank_)) outgoing_.push_back({rank, Death{of}});
}

// That all ranks before this one are gone: no network can be at fault.
bool Seat::is_sure_to_be_hub() const {
  return std::ranges::all_of(doubts_, [&](const auto& doubt) {
    const auto& [of, why] = doubt;
    const bool is_proof = why.evidence != Evidence::silence || !woke_;
    return why.evidence == Evidence::kernel || (is_proof && is_of_one_host(of, rank_));
  });
}

// A rank that was silent for too long speaks again, and this rank has heard of no later hub that is open. But if this
// rank has enlisted with a later one, which may be the hub already, it must hear nothing new from the earlier one: the
// later one would not know. It asks first to be forgotten there.
void Seat::return_to(int rank, Clock::time_point now) {
  const auto doubt = doubts_.find(rank);
  if (doubt == doubts_.end() || doubt->second.evidence != Evidence::silence || log_.is_gone(rank)) return;
  if (rank < spoken_ || (is_enlisted_ && !without_hub_since_)) return;
  if (is_hub()) {
    if (relay_->has_begun() || is_sure_to_be_hub()) return;
    step_back(rank, now);
  } else if (is_enlisted_) {
    if (returns_to_ != rank) outgoing_.push_back({hub_, Withdrawal{rank}});
    returns_to_ = rank;
    return;
  }
  doubts_.erase(doubt);
  choose_hub(now);
}

// From a hub that has not begun to a member of an earlier one, with all that have enlisted here.
void Seat::step_back(int to, Clock::time_point now) {
  const auto has_said_dead = [this](int rank) {
    return std::ranges::any_of(unsettled_, [rank](const ControlMessage& said) {
      const auto* const death = std::get_if<Death>(&said);
      return death != nullptr && death->rank == rank;
    });
  };
  for (const int member : relay_->enlisted()) outgoing_.push_back({member, Withdrawal{to}});
  for (auto& said : relay_->take_early())
    if (said.first != rank_ && std::holds_alternative<Goodbye>(said.second)) held_.push_back(std::move(said));
  relay_.reset();
  for (const auto& [of, doubt] : doubts_)  // the earlier hub may be of another host, and not know
    if (doubt.evidence == Evidence::kernel && is_of_one_host(of, rank_) && !log_.is_gone(of) && !has_said_dead(of))
      unsettled_.emplace_back(Death{of});
  without_hub_since_ = now;
  if (leaves_) unsettled_.emplace_back(Goodbye{});
}

void Seat::withdrawn(int from, int to, Clock::time_point now) {
  if (from > rank_ && to < 0) {
    if (is_hub() && !relay_->is_open()) relay_->forget(from);
    if (is_hub()) relay_->received(from, LifeSign{}, now);
  } else if (from > rank_ && !is_hub()) {
    std::erase_if(held_, [&](const auto& said) { return said.first == from; });
    outgoing_.push_back({from, Withdrawal{to}});
  } else if (from > rank_ && !relay_->has_begun() && !is_sure_to_be_hub()) {
    relay_->forget(from);
    outgoing_.push_back({from, Withdrawal{to}});
  } else if (from == hub_ && from < rank_ && to >= spoken_) {
    is_enlisted_ = false;
    returns_to_.reset();
    const auto doubt = doubts_.find(to);
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
  std::vector<Clock::time_point> heard;
  for (int rank = 0; rank < log_.ranks(); ++rank) heard.push_back(roll_call_.silent_since(rank, now));
  roll_call_.end();
  relay_.emplace(rank_, hosts_, log_, farewells_, pace_, now, heard, woke_.has_value());
  for (const auto& [rank, doubt] : doubts_) relay_->lose(rank, doubt.why, doubt.evidence, now);
  relay_->replay(std::exchange(held_, {}), now);
  for (const ControlMessage& said : unsettled_)
    if (!std::holds_alternative<Goodbye>(said)) relay_->received(rank_, said, now);
  relay_->tick(now);
  take_relayed();
}

}  // namespace tutti::internal
