// How long nothing has moved in a communicator's calls, and what is due then.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <optional>
#include <utility>

#include "runtime/backoff_policy.h"

namespace tutti::internal {

// Looked at now and then while somebody waits. Counts at most `longest_gap` between two looks: time in which nobody
// looked proves nothing. Reads no clock. Under the engine's lock.
class StallDetector {
 public:
  using Clock = BackoffPolicy::Clock;

  // `moves` grows whenever a call moves. False where it has grown since the last look: then counting starts anew.
  bool look(std::uint64_t moves, Clock::time_point now, Clock::duration longest_gap) {
    if (moves_ != moves || looked_ == Clock::time_point{}) {
      *this = StallDetector(moves, now);
      return false;
    }
    waited_ += std::min(now - looked_, longest_gap);
    looked_ = now;
    return true;
  }
  Clock::duration waited() const { return waited_; }

  // Whether it is time to ask the peer what it does: after `first`, then after twice as long each time, but at least
  // every `longest`. Where it has left the hub knows what it had called: then at once, and again soon, as a question is
  // lost while there is no hub.
  bool is_time_to_ask(Clock::duration first, Clock::duration longest, bool has_left) {
    const bool has_just_left = has_left && !std::exchange(asked_after_leaving_, has_left);
    if (!has_just_left && waited_ < std::max(has_left ? Clock::duration(0) : first, next_question_)) return false;
    next_question_ = waited_ + (has_left ? std::min<Clock::duration>(kSoon, longest) : std::min(waited_, longest));
    return true;
  }
  // Once.
  bool is_time_to_warn(Clock::duration after) {
    if (waited_ <= after || warned_) return false;
    return warned_ = true;
  }

  // Once.
  bool is_time_to_survey(Clock::duration after) {
    if (waited_ <= after || surveyed_) return false;
    return surveyed_ = true;
  }
  bool has_surveyed() const { return surveyed_; }

  // How long something has been so, as far as looks can say.
  class Lasting {
   public:
    // Whether it has been so for longer than `grace`.
    bool is_over(bool is_so, Clock::duration waited, Clock::duration grace) {
      if (!is_so) {
        since_.reset();
        return false;
      }
      if (!since_) since_ = waited;
      return waited > *since_ + grace;
    }

   private:
    std::optional<Clock::duration> since_;
  };
  bool sends_no_more_for(bool is_so, Clock::duration grace) { return sends_no_more_.is_over(is_so, waited_, grace); }
  bool is_lost_for(bool is_lost, Clock::duration grace) { return lost_.is_over(is_lost, waited_, grace); }

  StallDetector() = default;

 private:
  static constexpr std::chrono::milliseconds kSoon{50};
  StallDetector(std::uint64_t moves, Clock::time_point now) : moves_(moves), looked_(now) {}

  std::uint64_t moves_ = 0;
  Clock::time_point looked_{};
  Clock::duration waited_{}, next_question_{};
  Lasting sends_no_more_, lost_;  // the peer that is waited for; any rank
  bool warned_ = false, surveyed_ = false, asked_after_leaving_ = false;
};

}  // namespace tutti::internal
