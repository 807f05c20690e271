#include "topology/processors.h"

#include <gtest/gtest.h>

#include <random>
#include <thread>

namespace tutti::internal::topology {
namespace {

Processors from_to(int first, int end) {
  Processors processors;
  for (int i = first; i < end; ++i) processors.push_back(i);
  return processors;
}

std::vector<Processors> all_on(int ranks, const Processors& allowed) {
  return std::vector<Processors>(static_cast<std::size_t>(ranks), allowed);
}

TEST(Processors, TravelAsBits) {
  for (const Processors& processors : {Processors{}, Processors{0}, Processors{7}, Processors{8}, Processors{0, 5, 64},
                                       from_to(0, 1024), Processors{4095}})
    EXPECT_EQ(from_bits(to_bits(processors)), processors);
  EXPECT_EQ(to_bits({0, 9}), std::string("\x01\x02"));
  EXPECT_EQ(to_bits({4095}).size(), 512u);
}

TEST(Processors, AreThoseThatTheThreadIsBoundTo) {
  const Processors all = allowed_processors();
  ASSERT_FALSE(all.empty());
  std::thread([&] {
    ASSERT_TRUE(run_on({all.back()}));
    EXPECT_EQ(allowed_processors(), Processors{all.back()});
    EXPECT_EQ(usable_processors(), 1);
    EXPECT_FALSE(run_on({}));
    EXPECT_EQ(allowed_processors(), Processors{all.back()});
  }).join();
  EXPECT_EQ(allowed_processors(), all);
}

TEST(MustShare, RanksThatOutnumberTheProcessors) {
  EXPECT_FALSE(must_share(all_on(4, from_to(0, 4))));
  EXPECT_TRUE(must_share(all_on(5, from_to(0, 4))));
  EXPECT_FALSE(must_share(all_on(256, from_to(0, 256))));
  EXPECT_TRUE(must_share(all_on(257, from_to(0, 256))));
}

TEST(MustShare, NotARankAlone) {
  EXPECT_FALSE(must_share({}));
  EXPECT_FALSE(must_share(all_on(1, {3})));
  EXPECT_FALSE(must_share(all_on(1, {})));  // a job of one says nothing of its place
}

TEST(MustShare, NotRanksThatALauncherBoundToACoreEach) {
  EXPECT_FALSE(must_share({{0}, {1}, {2}}));
  EXPECT_TRUE(must_share({{0}, {1}, {0}}));            // round and round two cores
  EXPECT_FALSE(must_share({{0, 4}, {1, 5}, {0, 4}}));  // two of them on the hardware threads of one core
}

TEST(MustShare, RanksOfOneMaskThatIsNarrowerThanTheMachine) {
  EXPECT_TRUE(must_share(all_on(4, {2, 3})));
  EXPECT_FALSE(must_share({{0, 1}, {2, 3}, {0, 1}, {2, 3}}));  // two and two
  EXPECT_TRUE(must_share({{0, 1}, {0, 1}, {0, 1}, {2, 3, 4, 5}}));
}

TEST(MustShare, NotWhereWhoCanGoElsewhereDoes) {
  EXPECT_FALSE(must_share({{0, 1, 2, 3}, {0}, {1}, {0, 1, 2}}));
  // A chain: each must move on for the last.
  EXPECT_FALSE(must_share({{0, 1}, {1, 2}, {2, 3}, {0, 3}}));
  EXPECT_TRUE(must_share({{0, 1}, {1, 2}, {0, 2}, {0, 1, 2}}));
}

// By Hall's theorem: every set of ranks has at least as many processors among which it may choose.
bool some_set_lacks_processors(const std::vector<Processors>& ranks) {
  for (unsigned set = 1; set < 1u << ranks.size(); ++set) {
    unsigned members = 0, processors = 0;
    for (std::size_t r = 0; r < ranks.size(); ++r) {
      if (!(set >> r & 1)) continue;
      ++members;
      for (const int processor : ranks[r]) processors |= 1u << processor;
    }
    if (static_cast<unsigned>(__builtin_popcount(processors)) < members) return true;
  }
  return false;
}

TEST(MustShare, ExactlyWhereSomeRanksHaveTooFewProcessorsAmongThem) {
  std::mt19937 random(7);
  int crowded = 0;
  for (int round = 0; round < 3000; ++round) {
    std::vector<Processors> ranks(2 + random() % 6);
    for (Processors& rank : ranks) {
      while (rank.empty())
        for (int processor = 0; processor < 8; ++processor)
          if (random() % 4 == 0) rank.push_back(processor);
    }
    ASSERT_EQ(must_share(ranks), some_set_lacks_processors(ranks)) << round;
    crowded += must_share(ranks);
  }
  EXPECT_GT(crowded, 300);
  EXPECT_LT(crowded, 2700);
}

}  // namespace
}  // namespace tutti::internal::topology
