// Which scratch memory a plan gets.
#include "executor/scratch.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <memory>
#include <vector>

namespace tutti::internal {
namespace {

TEST(Scratch, APlanThatLeavesNothingHasAPlaceOfItsOwn) {
  Plan plan;
  plan.scratch_bytes = 4096;
  Scratch scratch;
  std::vector<std::size_t> asked;
  const auto allocate = [&](std::size_t bytes) {
    asked.push_back(bytes);
    return std::make_shared<SymmetricMemory>(nullptr, bytes);
  };
  scratch.fit(plan, allocate);
  std::byte* const own = scratch.begin(plan);
  plan.leaves_copies = true;
  plan.traffic = {{.sends = 1, .lends = 0, .receives = 1, .arrivals = 1}};
  scratch.fit(plan, allocate);
  std::byte* const left = scratch.begin(plan);
  EXPECT_NE(left, own);
  plan.leaves_copies = false;
  EXPECT_EQ(scratch.begin(plan), own);
  EXPECT_EQ(scratch.begin(plan), own);
  EXPECT_EQ(asked, (std::vector<std::size_t>{4096, 2 * 4096}));
  plan.leaves_copies = true;
  plan.traffic = {{.sends = 1}};
  scratch.fit(plan, allocate);
  EXPECT_EQ(asked.back(), CopyRing::kAheadCalls * 4096) << "the root of a broadcast only sends";
}

}  // namespace
}  // namespace tutti::internal
