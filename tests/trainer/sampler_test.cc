#include "trainer/sampler.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

namespace tutti::trainer {
namespace {

TEST(Shard, SharesCoverEveryPointOnceAndDifferByOneAtMost) {
  for (std::size_t points : {0, 1, 2, 3, 7, 64, 82, 1000}) {
    for (int ranks : {1, 2, 3, 5, 8, 100}) {
      std::size_t next = 0;
      for (int rank = 0; rank < ranks; ++rank) {
        const Range range = shard(points, rank, ranks);
        EXPECT_EQ(range.first, next);
        EXPECT_GE(range.size(), points / ranks);
        EXPECT_LE(range.size(), points / ranks + 1);
        next = range.last;
      }
      EXPECT_EQ(next, points);
    }
  }
}

TEST(Sampler, EveryPassTakesEachPointOnceInAnotherOrder) {
  for (std::size_t batch : {1, 3, 10, 20}) {
    Sampler sampler(20, batch, 5);
    std::vector<std::size_t> previous;
    for (int pass = 0; pass < 3; ++pass) {
      std::vector<std::size_t> seen;
      while (seen.size() < 20) {
        const auto indices = sampler.next();
        EXPECT_EQ(indices.size(), std::min<std::size_t>(batch, 20 - seen.size()));
        seen.insert(seen.end(), indices.begin(), indices.end());
      }
      EXPECT_NE(seen, previous);
      previous = seen;
      std::sort(seen.begin(), seen.end());
      std::vector<std::size_t> all(20);
      std::iota(all.begin(), all.end(), 0);
      EXPECT_EQ(seen, all);
    }
  }
}

TEST(Sampler, TheSeedAloneDecidesTheOrder) {
  Sampler a(100, 100, 1), same(100, 100, 1), other(100, 100, 2);
  const auto first = a.next(), second = same.next(), third = other.next();
  EXPECT_TRUE(std::equal(first.begin(), first.end(), second.begin()));
  EXPECT_FALSE(std::equal(first.begin(), first.end(), third.begin()));
}

}  // namespace
}  // namespace tutti::trainer
