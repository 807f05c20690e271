#include "runtime/plan_cache.h"

#include <gtest/gtest.h>

#include <cstddef>

#include "base/log.h"
#include "tutti/settings.h"

namespace tutti::internal {
namespace {

constexpr std::size_t kMiB = 1 << 20;

// Of an all_reduce of so many bytes by 2 ranks, in a job with a GPU unless `cuts` is false.
std::size_t parts_of(std::size_t bytes, bool cuts = true) {
  const Log log{Settings()};
  PlanCache plans(0, Layout::of(2), ChoiceTable::built_in(), {}, cuts, log);
  const CallSpec call{.collective = Collective::all_reduce, .dtype = DType::float32, .count = bytes / sizeof(float)};
  return plans.plan_for(call, PlanCache::Buffers::packed).parts;
}

TEST(PlanCache, CutsLongCallsIntoPartsOf8MiBAtMost128OfThem) {
  EXPECT_EQ(parts_of(8 * kMiB), 1u);
  EXPECT_EQ(parts_of(8 * kMiB + 4), 2u);
  EXPECT_EQ(parts_of(256 * kMiB), 32u);
  EXPECT_EQ(parts_of(1024 * kMiB), 128u);
  EXPECT_EQ(parts_of(1024 * kMiB + 4), 128u);
  EXPECT_EQ(parts_of(4096 * kMiB), 128u);
}

TEST(PlanCache, CutsNothingWithoutAGpu) { EXPECT_EQ(parts_of(1024 * kMiB, false), 1u); }

}  // namespace
}  // namespace tutti::internal
