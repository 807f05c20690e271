// Damages plans at random, the way a mistake in what makes or fuses them would.
#pragma once

#include <optional>
#include <random>
#include <string>

#include "executor/plan.h"

namespace tutti::internal {

class PlanMutator {
 public:
  PlanMutator(int leaves, std::uint64_t seed) : leaves_(static_cast<std::uint32_t>(leaves)), random_(seed) {}

  // Changes one thing and says what; says nothing where there was nothing of the kind to change.
  std::string change_fusing(Plan& plan);
  std::string change_memory(Plan& plan);  // places, sizes, reductions, counts

 private:
  std::size_t below(std::size_t n) { return random_() % n; }
  // The number of some step of this kind, if there is one that the function takes.
  template <class Kind, class Takes>
  std::optional<std::size_t> pick(const Plan& plan, Takes takes);
  template <class Kind>
  std::optional<std::size_t> pick(const Plan& plan) {
    return pick<Kind>(plan, [](const Kind&, std::size_t) { return true; });
  }

  std::string push_more(Plan& plan);
  std::string push_less(Plan& plan);
  std::string push_from_elsewhere(Plan& plan);
  std::string flip_fused(Plan& plan);
  std::string finish_elsewhere(Plan& plan);
  std::string move_place(Plan& plan);
  std::string resize(Plan& plan);
  std::string resize_message(Plan& plan);
  std::string swap_reductions(Plan& plan);
  std::string miscount(Plan& plan);

  const std::uint32_t leaves_;
  std::mt19937_64 random_;
};

}  // namespace tutti::internal
