// Damages schedules at random, the way a mistake in an algorithm would.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "schedule/schedule.h"

namespace tutti::internal {

class Mutator {
 public:
  explicit Mutator(std::uint64_t seed) : random_(seed) {}

  // Changes one thing in one rank's schedule and says what; says nothing where there was nothing of the kind to change.
  std::string mutate(std::vector<Schedule>& schedules);

 private:
  std::size_t below(std::size_t n) { return random_() % n; }
  int one_more_or_less() { return below(2) == 0 ? 1 : -1; }
  std::optional<std::size_t> pick(const Schedule& schedule, const std::function<bool(const Step&)>& which);

  std::string drop(Schedule& schedule, bool wait);
  std::string duplicate(Schedule& schedule);
  std::string reorder(Schedule& schedule, bool neighbours);
  std::string redirect_peer(Schedule& schedule, int ranks);
  std::string redirect_region(Schedule& schedule);
  std::string change_wait(Schedule& schedule);
  std::string change_message(Schedule& schedule);
  std::string change_finish(Schedule& schedule);
  std::string change_source(Schedule& schedule, int ranks);
  std::string drop_source(Schedule& schedule);
  std::string change_extent(Schedule& schedule);
  void redirect(const Schedule& schedule, Region& region);

  std::mt19937_64 random_;
};

}  // namespace tutti::internal
