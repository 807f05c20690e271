#include "schedule/layout.h"

#include <gtest/gtest.h>

#include "schedule/examples.h"
#include "schedule/partition.h"

namespace tutti::internal {
namespace {

TEST(Layout, FindsTheRankOfEveryLeaf) {
  const Layout layout = layout_of_leaves({2, 0, 3, 1, 0});
  EXPECT_EQ(layout.ranks(), 5);
  EXPECT_EQ(layout.leaves(), 6);
  EXPECT_FALSE(layout.one_leaf_each());
  std::vector<int> owners;
  for (int leaf = 0; leaf < layout.leaves(); ++leaf) owners.push_back(layout.rank_of_leaf(leaf));
  EXPECT_EQ(owners, (std::vector<int>{0, 0, 2, 2, 2, 3}));
}

TEST(Layout, CountsHosts) {
  Layout layout = Layout::of(4);
  EXPECT_EQ(layout.hosts(), 1);
  EXPECT_TRUE(layout.one_leaf_each());
  layout.host = {0, 1, 1, 2};
  EXPECT_EQ(layout.hosts(), 3);
}

TEST(CanonicalSplit, IsAtTheLargestPowerOfTwoBelowTheSize) {
  const int expected[] = {1, 2, 2, 4, 4, 4, 4, 8, 8};
  for (int size = 2; size <= 10; ++size)
    for (int lo : {0, 3}) EXPECT_EQ(canonical_split(lo, lo + size), lo + expected[size - 2]) << size;
}

TEST(Partition, SlicesAndChunksCoverEveryElementOnceInOrder) {
  for (std::size_t count : {0, 1, 6, 7, 8, 100, 1023})
    for (std::size_t slices : {1, 2, 7, 64})
      for (std::size_t chunks : {1, 3, 5})
        for (std::size_t grain : {1, 4, 16}) {
          const Partition partition{count, slices, chunks, grain, grain};
          std::size_t next = 0;
          for (std::size_t slice = 0; slice < slices; ++slice) {
            EXPECT_EQ(partition.slice(slice).begin, next);
            for (std::size_t chunk = 0; chunk < chunks; ++chunk) {
              EXPECT_EQ(partition.chunk(slice, chunk).begin, next);
              next = partition.chunk(slice, chunk).end;
            }
            EXPECT_EQ(partition.slice(slice).end, next);
            EXPECT_TRUE(next == count || next % grain == 0);
          }
          EXPECT_EQ(next, count);
        }
}

TEST(Partition, ExactSlicesOfAMultipleAreEqual) {
  for (std::size_t slices = 1; slices <= 64; ++slices) {
    const Partition partition{slices * 13, slices};
    for (std::size_t slice = 0; slice < slices; ++slice) EXPECT_EQ(partition.slice(slice).size(), 13u);
  }
}

TEST(Partition, DoesNotOverflowForHugeCounts) {
  const std::size_t count = std::size_t{1} << 62;
  const Partition partition{count, 64};
  EXPECT_EQ(partition.slice(63).end, count);
  EXPECT_EQ(partition.slice(32).begin, count / 2);
}

}  // namespace
}  // namespace tutti::internal
