// What must hold of a simulated job, whatever has happened to it.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "control/simulated_job.h"

namespace tutti::internal {

inline const Pace kUsual{std::chrono::milliseconds(500), std::chrono::milliseconds(5'000)};

inline Clock::time_point after(int ms) { return Clock::time_point() + std::chrono::milliseconds(ms); }

inline std::vector<int> one_host(int ranks) { return std::vector<int>(static_cast<std::size_t>(ranks), 0); }

inline bool is_there(SimulatedJob& job, int rank) { return job.runs(rank) && !job.seat(rank).is_over(); }
inline bool may_go_on(SimulatedJob& job, int rank) {
  return is_there(job, rank) && job.seat(rank).log().is_majority([](int) { return true; });
}
inline std::vector<std::string> story_of(SimulatedJob& job, int rank) {
  std::vector<std::string> events;
  for (const Notice& event : job.events(rank))
    events.push_back(std::to_string(event.serial) + ":" + std::to_string(static_cast<int>(event.kind)) + " of " +
                     std::to_string(event.peer) + ", " + std::to_string(event.communicator) + ", " + event.message);
  return events;
}

// Of two that are there, each has given the other one up, or neither has, and then both have heard the same events in
// the same order. All that may go on are together.
inline void expect_agreement(SimulatedJob& job) {
  for (int rank = 0; rank < job.size(); ++rank)
    for (int other = 0; other < rank; ++other) {
      if (!is_there(job, rank) || !is_there(job, other)) continue;
      const bool are_apart = job.seat(rank).log().is_gone(other);
      EXPECT_EQ(job.seat(other).log().is_gone(rank), are_apart) << "ranks " << rank << " and " << other;
      if (are_apart) {
        EXPECT_FALSE(may_go_on(job, rank) && may_go_on(job, other)) << rank << " and " << other;
      } else {
        EXPECT_EQ(story_of(job, rank), story_of(job, other)) << rank << " and " << other;
      }
    }
}

}  // namespace tutti::internal
