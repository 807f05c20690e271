// Tries a plan's prepared reductions on numbers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "executor/plan.h"
#include "reduce/reduce.h"

namespace tutti::internal {

class ReductionCheck {
 public:
  ReductionCheck(const Plan& plan, std::uint32_t leaves);

  // Whether the reductions of this step give, of some numbers, what reduce() gives of its sources and leaves. Throws
  // Refutation.
  void check(const ReduceStep& step) const;

 private:
  void check(const ReduceStep& step, std::size_t reduction, bool finish, bool partial) const;
  const std::byte* numbers(const PlanSource& source, std::size_t which) const;

  const Plan& plan_;
  const std::uint32_t leaves_;
  std::vector<std::byte> elements_, partials_;  // sources of each form begin anywhere in them
};

}  // namespace tutti::internal
