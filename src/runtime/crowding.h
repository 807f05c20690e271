// Whether the processor that a rank waits on is its own: what the rank finds out by itself.
//
// When ranks join, those of one host count their processors (topology::must_share). Nobody counts the ranks of
// containers that share a machine, nor those that are bound later. Such a rank spins until the system takes its
// processor away, and the rank that it waits for may have been waiting for just that processor: each step of a call
// takes a slice of the scheduler, milliseconds.
//
// A waiting rank that spins looks at the clock now and then. Two things make it ask the system how often its thread has
// lost its processor against its will (ru_nivcsw, which also counts sched_yield() where another thread then ran):
//  - it was away for longer than a few spins take. A hypervisor that runs another machine looks the same; but then the
//    count has not grown, and giving way would not help.
//  - the wait is long. The others may have given way already: then this rank is never away for long, and keeps the
//    processor from them all the same.
// A count that has grown is a sign. A few signs within a short time: the rank is crowded, and gives way.
//
// A rank that is crowded goes on asking. As long as its yields do let others run, it stays crowded; when they have not
// for a while, it spins again.
//
// Yields that take a slice of the scheduler each go to a thread that computes. A sleeping rank is woken sooner: once
// its message is there, the system takes the processor from that thread. So it sleeps for a while where it would yield,
// if all its messages come by TCP; over shared memory a sleep costs more than it gains.
//
// Giving way helps where the others give way too. A thread that computes takes a whole slice for each yield, and where
// the rank does not wait for that thread, spinning is better. So there is a trial: once the others have had the time to
// find out as well, the rank compares how much its calls move now and before. If it is far less, then it spins again,
// and tries the next time after a pause, which doubles.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <thread>

#include "runtime/backoff_policy.h"

namespace tutti::internal {

// A value that reads no clock. Not thread-safe: the engine's lock is held.
class Crowding {
 public:
  using Clock = Look::Clock;

  bool is_crowded() const { return crowded_; }
  // The ranks of this host have counted: nothing that a rank sees changes that.
  void set_crowded() { crowded_ = settled_ = true; }

  // What the system and the engine say at a look.
  struct Sample {
    std::uint64_t switches = 0;  // how often `thread` has lost its processor against its will
    std::uint64_t moves = 0;     // of all calls of this rank
    std::thread::id thread{};
  };
  // Whether one is wanted at this look.
  bool wants_sample(const Look& look) const {
    if (settled_) return false;
    if (crowded_) return look.at - last_.at >= kBetweenSamples;
    if (look.away >= kAway) return true;
    return look.is_last ? last_.at > look.since : look.at - std::max(last_.at, look.since) >= kLongWait;
  }
  void take(const Sample& sample, const Look& look);

  // A rank that is crowded has called sched_yield().
  void yielded() { ++yields_; }
  // A look behind that, where sleeping is as cheap: after two long yields the rank should sleep instead for a while.
  void note_yield(const Look& look) {
    if (!crowded_ || look.away < kLongYield) return;
    if (look.at - long_yield_ <= kLongYieldsWithin) no_yield_before_ = look.at + kSleepsFor;
    long_yield_ = look.at;
  }
  Clock::time_point no_yield_before() const { return no_yield_before_; }

  static constexpr std::chrono::microseconds kAway{200};    // 64 spins take a tenth of it
  static constexpr std::chrono::milliseconds kLongWait{1};  // less than a slice of the scheduler
  static constexpr std::chrono::milliseconds kSignsWithin{100};
  static constexpr int kSigns = 3;
  static constexpr std::chrono::milliseconds kBetweenSamples{10};
  static constexpr std::uint64_t kYieldsForASwitch = 8;  // more of them: the processor is as good as this rank's own
  static constexpr std::chrono::milliseconds kQuiet{250};
  static constexpr std::chrono::milliseconds kLongYield{1}, kLongYieldsWithin{20}, kSleepsFor{50};
  static constexpr std::chrono::milliseconds kTrial{100};  // and before it the others have as long
  static constexpr std::uint64_t kFarLess = 4;             // times
  static constexpr std::chrono::seconds kShortestPause{2}, kLongestPause{64};

 private:
  struct Taken : Sample {
    Clock::time_point at{};
  };
  enum class Trial : std::uint8_t { others_find_out, runs, over };
  static double moves_a_second(const Taken& from, const Taken& to);
  void note_sign();
  bool is_in_vain();
  void leave();

  bool crowded_ = false, settled_ = false;
  Taken last_;
  int signs_ = 0;
  Taken first_sign_;
  Clock::time_point not_before_{};
  Clock::duration pause_ = kShortestPause;

  // Of a rank that is crowded.
  Clock::time_point long_yield_{}, no_yield_before_{};
  std::uint64_t yields_ = 0;    // since the last sample
  Clock::time_point proven_{};  // when its yields last let others run
  Trial trial_ = Trial::over;
  Taken trial_from_;
  double moves_before_ = 0;  // a second
};

}  // namespace tutti::internal
