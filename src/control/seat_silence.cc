// What a rank does while the hub is silent, before it gives the hub up and after.
#include <algorithm>

#include "control/seat.h"

namespace tutti::internal {

// Before anything is judged. What was said while this rank slept may be read until the next tick.
void Seat::notice_sleep(Clock::time_point now) {
  if (!is_hub() && now - last_tick_ > pace_.silence / 2) woke_ = now;
  if (relay_) relay_->notice_sleep(now);
  const auto slept = slept_between(pace_, last_look_, now);
  if (slept == Clock::duration(0)) return;
  last_look_ = now;
  heard_ = std::min(now, heard_ + slept);
  if (without_hub_since_) without_hub_since_ = std::min(now, *without_hub_since_ + slept);
  roll_call_.slept(slept, now);
}

// Whether that rank is to give signs of life: it may become the hub, or a member of this rank.
bool Seat::is_asked(int rank) const {
  if (!roll_call_.is_on() || rank == rank_ || log_.is_gone(rank) || doubts_.contains(rank)) return false;
  if (rank == hub_) return without_hub_since_.has_value();  // else it pings
  if (rank > rank_ && !roll_call_.may_call_up()) return false;
  int last = hub_;
  for (int i = 0; i < RollCall::kCandidates && last < log_.ranks(); ++i) last = log_.next_present(last);
  return std::min(rank, rank_) <= last;
}

void Seat::ask_for_signs_of_life(Clock::time_point now) {
  if (is_hub() || (!without_hub_since_ && now - heard_ <= pace_.uneasy())) return;
  roll_call_.next_round();
  doubt_silent_candidates(now);
  if (is_hub()) return;
  for (int rank = 0; rank < log_.ranks(); ++rank) {
    if (!is_asked(rank)) continue;
    roll_call_.asked(rank, now);
    outgoing_.push_back({rank, LifeSign{true}});
  }
}

// They are asked half the heartbeat timeout after the hub's last word. When the hub is given up, so are they.
void Seat::doubt_silent_candidates(Clock::time_point now) {
  if (!without_hub_since_) return;
  for (int rank = hub_; rank < rank_; rank = log_.next_present(rank)) {
    const auto limit = pace_.silence / 2;
    if (now - roll_call_.silent_since(rank, now) > limit && !doubts_.contains(rank))
      doubt(rank, {silent_for(limit), Evidence::silence});
  }
  choose_hub(now);
}

}  // namespace tutti::internal
