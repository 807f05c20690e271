#include "runtime/crowding.h"

#include <utility>

namespace tutti::internal {

// Counts of two threads say nothing about each other. Of one thread, those from before this wait count only if it was
// away in this wait: else it may have lost its processor while it computed.
void Crowding::take(const Sample& sample, const Look& look) {
  const Taken last = std::exchange(last_, Taken{sample, look.at});
  const std::uint64_t yields = std::exchange(yields_, 0);
  const std::uint64_t grown = sample.thread == last.thread ? sample.switches - last.switches : 0;
  if (!crowded_) {
    if (grown > 0 && (look.away >= kAway ? look.at - last.at <= kSignsWithin : last.at > look.since)) note_sign();
    return;
  }
  if (yields > 0 && grown * kYieldsForASwitch >= yields) proven_ = look.at;
  if (look.at - proven_ >= kQuiet) {
    leave();
    pause_ = kShortestPause;
  } else if (is_in_vain()) {
    leave();
    not_before_ = look.at + pause_;
    pause_ = std::min<Clock::duration>(2 * pause_, kLongestPause);
  }
}

void Crowding::note_sign() {
  if (signs_ == 0 || last_.at - first_sign_.at > kSignsWithin) {
    signs_ = 0;
    first_sign_ = last_;
  }
  if (++signs_ < kSigns || last_.at < not_before_) return;
  crowded_ = true;
  proven_ = last_.at;
  trial_ = Trial::others_find_out;
  trial_from_ = last_;
  moves_before_ = moves_a_second(first_sign_, last_);
}

void Crowding::leave() {
  crowded_ = false;
  signs_ = 0;
}

// Whether the trial has just ended, and shows that giving way does harm.
bool Crowding::is_in_vain() {
  if (trial_ == Trial::over || last_.at - trial_from_.at < kTrial) return false;
  if (trial_ == Trial::others_find_out) {
    trial_ = Trial::runs;
    trial_from_ = last_;
    return false;
  }
  trial_ = Trial::over;
  return kFarLess * moves_a_second(trial_from_, last_) < moves_before_;
}

// Those of a communicator that has ended since are missing: then there are none.
double Crowding::moves_a_second(const Taken& from, const Taken& to) {
  if (to.at <= from.at || to.moves <= from.moves) return 0;
  return static_cast<double>(to.moves - from.moves) / std::chrono::duration<double>(to.at - from.at).count();
}

}  // namespace tutti::internal
