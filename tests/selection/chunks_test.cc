// Into how many pieces messages are cut that no rule of a table speaks of.
#include <gtest/gtest.h>

#include "selection/choose.h"

namespace tutti::internal {
namespace {

TEST(Chunks, AllGatherCutsSlicesForTheRingsButNotThoseThatAreCopiedOnce) {
  const auto chunks = [](int ranks, int hosts, std::size_t bytes) {
    return Chooser(ChoiceTable::built_in(), ranks, hosts)
        .chunks(Collective::all_gather, Algorithm::one_shot, bytes, Order::canonical);
  };
  EXPECT_EQ(chunks(8, 8, 1 << 20), 2) << "64 KiB of a slice";
  EXPECT_EQ(chunks(8, 8, (1 << 20) + 4), 3) << "and no more";
  EXPECT_EQ(chunks(8, 2, 1 << 20), 2) << "not all ranks have as many on their host";
  EXPECT_EQ(chunks(2, 2, 1 << 20), 8);
  EXPECT_EQ(chunks(2, 1, 1 << 20), 4) << "128 KiB of a slice, where two ranks exchange";
  EXPECT_EQ(chunks(2, 1, 8 << 20), 32);
  EXPECT_EQ(chunks(2, 1, (8 << 20) + 8), 65);
  EXPECT_EQ(chunks(8, 1, 1 << 20), 1);
  EXPECT_EQ(chunks(4, 1, 512 << 10), 2) << "each reader gets it";
  EXPECT_EQ(chunks(4, 1, 2 << 20), 1) << "512 KiB of a slice";
  EXPECT_EQ(chunks(4, 1, (2 << 20) + 16), 2);
  EXPECT_EQ(chunks(4, 1, 16 << 20), 8);
  EXPECT_EQ(chunks(4, 1, (16 << 20) + 16), 65) << "too long to be copied once";
  const Chooser chooser(ChoiceTable::built_in(), 4, 1);
  EXPECT_EQ(chooser.chunks(Collective::all_gather, Algorithm::one_shot, 2 << 20, Order::canonical, true), 8)
      << "rows of different lengths are copied for each reader";
}

TEST(Chunks, ABroadcastIsCutUnlessItsTwoRanksShareAHost) {
  const auto chunks = [](int ranks, int hosts, Algorithm algorithm, bool crowded = false, std::size_t bytes = 1 << 20) {
    return Chooser(ChoiceTable::built_in(), ranks, hosts, crowded)
        .chunks(Collective::broadcast, algorithm, bytes, Order::canonical);
  };
  EXPECT_EQ(chunks(2, 1, Algorithm::chain), 1);
  EXPECT_EQ(chunks(2, 1, Algorithm::binomial_tree), 1);
  EXPECT_EQ(chunks(2, 1, Algorithm::one_shot), 1);
  EXPECT_EQ(chunks(2, 1, Algorithm::chain, false, 0), 1);
  EXPECT_EQ(chunks(2, 1, Algorithm::chain, true), 8) << "on one core";
  EXPECT_EQ(chunks(2, 2, Algorithm::chain), 8);
  EXPECT_EQ(chunks(3, 1, Algorithm::chain), 8) << "a rank passes pieces on";
}

// So little of their rings is in use.
TEST(Chunks, AReduceScatterIsCutWhereRanksShareProcessors) {
  const auto chunks = [](int ranks, int hosts, std::size_t bytes, bool crowded, bool unequal = false) {
    return Chooser(ChoiceTable::built_in(), ranks, hosts, crowded)
        .chunks(Collective::reduce_scatter, Algorithm::one_shot, bytes, Order::canonical, unequal);
  };
  EXPECT_EQ(chunks(4, 1, 1 << 20, true), 2) << "128 KiB of a slice";
  EXPECT_EQ(chunks(5, 1, 5 << 18, true), 4) << "64 KiB";
  EXPECT_EQ(chunks(8, 1, 1 << 20, true), 2);
  EXPECT_EQ(chunks(8, 1, 0, true), 1);
  EXPECT_EQ(chunks(2, 1, 1 << 20, true), 1) << "two ranks gain nothing";
  EXPECT_EQ(chunks(1, 1, 1 << 20, true), 1);
  EXPECT_EQ(chunks(8, 1, 1 << 20, false), 1);
  EXPECT_EQ(chunks(8, 2, 1 << 20, true), 1) << "of several hosts";
  EXPECT_EQ(chunks(8, 1, 1 << 20, true, true), 1) << "rows of different lengths";
}

TEST(Chunks, TwoRanksOfAHostThatExchangeKeepPace) {
  constexpr Collective kAllGather = Collective::all_gather;
  constexpr std::size_t kMost = 8 << 20;
  EXPECT_EQ(pieces_ahead(kAllGather, {kMost, 2, 1}, 32), 4);
  EXPECT_EQ(pieces_ahead(kAllGather, {kMost, 2, 1}, 128), 16) << "as many bytes";
  EXPECT_EQ(pieces_ahead(kAllGather, {kMost, 2, 1}, 1), 1);
  EXPECT_GT(pieces_ahead(kAllGather, {1, 2, 1}, 128), 128);
  EXPECT_EQ(pieces_ahead(kAllGather, {0, 2, 1}, 1), 0);
  EXPECT_EQ(pieces_ahead(kAllGather, {kMost + 8, 2, 1}, 65), 0);
  EXPECT_EQ(pieces_ahead(kAllGather, {kMost, 2, 2}, 32), 0) << "a network has more on its way";
  EXPECT_EQ(pieces_ahead(kAllGather, {kMost, 2, 1, true}, 32), 0) << "a rank may have nothing to send";
  EXPECT_EQ(pieces_ahead(kAllGather, {kMost, 3, 1}, 32), 0);
  EXPECT_EQ(pieces_ahead(Collective::all_reduce, {kMost, 2, 1}, 32), 0);
}

}  // namespace
}  // namespace tutti::internal
