#include "selection/choose.h"

#include <gtest/gtest.h>

#include "collectives/catalogue.h"

namespace tutti::internal {
namespace {

constexpr Order kCanonical = Order::canonical, kAny = Order::any;
constexpr auto kAllReduce = Collective::all_reduce;

TEST(Choose, TheBuiltInTableAnswersEveryCallInCanonicalOrder) {
  for (const int ranks : {1, 2, 3, 8, 9, 33, 1000})
    for (const int hosts : {1, 2, ranks})
      for (const auto& [collective, order] : {std::pair{kAllReduce, kAny},
                                              {kAllReduce, kCanonical},
                                              {Collective::reduce_scatter, kCanonical},
                                              {Collective::all_gather, kCanonical},
                                              {Collective::broadcast, kCanonical},
                                              {Collective::barrier, kCanonical}})
        for (const std::size_t bytes : {std::size_t{0}, std::size_t{8}, std::size_t{1} << 20, kAnyBytes}) {
          const Chooser chooser(ChoiceTable::built_in(), ranks, hosts);
          const auto* entry = find_algorithm(collective, chooser.choose(collective, bytes, order));
          ASSERT_NE(entry, nullptr) << to_string(collective) << " " << ranks << " " << hosts << " " << bytes;
          EXPECT_TRUE(entry->canonical);
        }
}

TEST(Choose, TheBuiltInTableIsWhatWasMeasured) {
  const auto chosen = [](int ranks, int hosts, std::size_t bytes) {
    return Chooser(ChoiceTable::built_in(), ranks, hosts).choose(kAllReduce, bytes, kCanonical);
  };
  EXPECT_EQ(chosen(8, 1, 4096), Algorithm::one_shot);
  EXPECT_EQ(chosen(9, 1, 2048), Algorithm::recursive_doubling);
  EXPECT_EQ(chosen(8, 1, 4097), Algorithm::two_shot);
  EXPECT_EQ(chosen(8, 2, 4096), Algorithm::recursive_doubling);
  EXPECT_EQ(chosen(33, 1, 1 << 20), Algorithm::sliced_tree);
}

TEST(Choose, TheBuiltInTableJoinsRowsOfShortMessagesBetweenHosts) {
  const auto chosen = [](Collective collective, int ranks, int hosts, std::size_t bytes) {
    return Chooser(ChoiceTable::built_in(), ranks, hosts).choose(collective, bytes, kCanonical);
  };
  for (const auto& [collective, joined] : {std::pair{Collective::all_to_all, Algorithm::bruck},
                                           {Collective::all_gather, Algorithm::bruck},
                                           {Collective::scatter, Algorithm::binomial_tree}}) {
    EXPECT_EQ(chosen(collective, 3, 3, 16 << 10), joined);
    EXPECT_EQ(chosen(collective, 3, 3, (16 << 10) + 1), Algorithm::one_shot);
    EXPECT_EQ(chosen(collective, 2, 2, 64), Algorithm::one_shot);
    EXPECT_EQ(chosen(collective, 16, 1, 64), Algorithm::one_shot) << "shared memory";
  }
  EXPECT_EQ(chosen(Collective::all_gather, 16, 4, 64), Algorithm::ring) << "as before, where ranks share hosts";
  EXPECT_EQ(chosen(Collective::gather, 16, 16, 64), Algorithm::one_shot);
}

const ChoiceTable kTable{{{.max_ranks = 4, .hosts = HostCount::one, .max_bytes = 100, .algorithm = Algorithm::one_shot},
                          {.max_bytes = 1 << 20, .order = kAny, .algorithm = Algorithm::ring, .chunk_bytes = 1000},
                          {.hosts = HostCount::several, .algorithm = Algorithm::sliced_tree},
                          {.max_ranks = 16, .algorithm = Algorithm::binomial_tree, .chunk_bytes = 10}},
                         {}};

TEST(Choose, TheFirstRuleWhoseBoundsAllHoldDecides) {
  const auto chosen = [](int ranks, int hosts, std::size_t bytes, Order order) {
    return Chooser(kTable, ranks, hosts).choose(kAllReduce, bytes, order);
  };
  EXPECT_EQ(chosen(4, 1, 100, kCanonical), Algorithm::one_shot);
  EXPECT_EQ(chosen(4, 1, 101, kCanonical), Algorithm::binomial_tree);
  EXPECT_EQ(chosen(5, 1, 100, kCanonical), Algorithm::binomial_tree);
  EXPECT_EQ(chosen(4, 2, 100, kCanonical), Algorithm::sliced_tree);
  EXPECT_EQ(chosen(4, 1, 100, kAny), Algorithm::one_shot) << "a rule that keeps the order serves those who need not";
  EXPECT_EQ(chosen(5, 1, 100, kAny), Algorithm::ring);
  EXPECT_EQ(chosen(5, 1, (1 << 20) + 1, kAny), Algorithm::binomial_tree);
}

TEST(Choose, RowsOfDifferentLengthsPassOverRulesWhoseMessagesAreOfSeveral) {
  const ChoiceTable table{{{.collective = Collective::gather, .algorithm = Algorithm::binomial_tree},
                           {.collective = Collective::all_gather, .max_bytes = 100, .algorithm = Algorithm::bruck},
                           {.collective = Collective::all_gather, .algorithm = Algorithm::ring}},
                          {}};
  const Chooser chooser(table, 4, 1);
  EXPECT_EQ(chooser.choose(Collective::gather, kAnyBytes, kCanonical), Algorithm::binomial_tree);
  EXPECT_EQ(chooser.choose(Collective::gather, kAnyBytes, kCanonical, true), Algorithm::one_shot) << "the built-in's";
  EXPECT_EQ(chooser.choose(Collective::all_gather, 100, kCanonical), Algorithm::bruck);
  EXPECT_EQ(chooser.choose(Collective::all_gather, 100, kCanonical, true), Algorithm::ring);
  for (const int ranks : {1, 2, 8, 64, 1000})
    for (const int hosts : {1, 2, ranks})
      for (const AlgorithmEntry& entry : catalogue()) {
        const Chooser built_in(ChoiceTable::built_in(), ranks, hosts);
        for (const std::size_t bytes : {std::size_t{0}, std::size_t{64}, kAnyBytes}) {
          const Algorithm chosen = built_in.choose(entry.collective, bytes, kCanonical, true);
          ASSERT_NE(find_algorithm(entry.collective, chosen), nullptr) << name_of(entry);
          EXPECT_FALSE(find_algorithm(entry.collective, chosen)->joins_rows) << name_of(entry);
        }
      }
}

TEST(Choose, WhereNoRuleHoldsTheBuiltInTableDecides) {
  const Chooser given(kTable, 17, 1), built_in(ChoiceTable::built_in(), 17, 1);
  EXPECT_EQ(given.rule_for(kAllReduce, 64, kCanonical)->algorithm,
            built_in.rule_for(kAllReduce, 64, kCanonical)->algorithm);
  EXPECT_EQ(given.choose(Collective::barrier, 0, kCanonical), Algorithm::dissemination);
}

TEST(Choose, ChunksAreThoseOfTheRuleThatNamesTheAlgorithm) {
  const Chooser chooser(kTable, 8, 1);
  EXPECT_EQ(chooser.chunks(kAllReduce, Algorithm::ring, 5000, kAny), 5);
  EXPECT_EQ(chooser.chunks(kAllReduce, Algorithm::ring, 5000, kCanonical), 1) << "no such rule: the default";
  EXPECT_EQ(chooser.chunks(kAllReduce, Algorithm::binomial_tree, 5000, kCanonical), 128) << "no more than these";
  EXPECT_EQ(chooser.chunks(kAllReduce, Algorithm::binomial_tree, 0, kCanonical), 1);
  EXPECT_EQ(chooser.chunks(Collective::broadcast, Algorithm::chain, 1 << 20, kCanonical), 8);
  EXPECT_EQ(chooser.chunks(kAllReduce, Algorithm::two_shot, 4 << 20, kCanonical), 4) << "each has its own default";
}

TEST(Choose, ABroadcastOnOneHostGoesByWhatWasQuickestThere) {
  const auto chosen = [](int ranks, std::size_t bytes) {
    return Chooser(ChoiceTable::built_in(), ranks, 1).choose(Collective::broadcast, bytes, kCanonical);
  };
  EXPECT_EQ(chosen(3, 64 << 10), Algorithm::binomial_tree);
  EXPECT_EQ(chosen(3, 1 << 20), Algorithm::chain);
  EXPECT_EQ(chosen(3, (1 << 20) + 1), Algorithm::one_shot);
  for (const int ranks : {4, 8, 16}) {
    EXPECT_EQ(chosen(ranks, (64 << 10) - 1), Algorithm::binomial_tree);
    EXPECT_EQ(chosen(ranks, 64 << 10), Algorithm::one_shot);
    EXPECT_EQ(chosen(ranks, 4 << 20), Algorithm::one_shot);
  }
  for (const int ranks : {3, 4, 8, 9, 16})
    EXPECT_EQ(chosen(ranks, (4 << 20) + 1), ranks == 3 ? Algorithm::chain : Algorithm::hierarchical);
  for (const int ranks : {2, 17}) {
    EXPECT_EQ(chosen(ranks, 64 << 10), Algorithm::binomial_tree);
    EXPECT_EQ(chosen(ranks, (64 << 10) + 1), Algorithm::chain);
  }
  for (const int hosts : {2, 4})
    EXPECT_EQ(Chooser(ChoiceTable::built_in(), 4, hosts).choose(Collective::broadcast, 64 << 10, kCanonical),
              Algorithm::binomial_tree);
}

TEST(Choose, SharedHostsAreSeveralThatHoldSeveralRanks) {
  const Rule rule{.hosts = HostCount::shared};
  EXPECT_FALSE(rule.is_for(4, 1));
  EXPECT_TRUE(rule.is_for(4, 2));
  EXPECT_FALSE(rule.is_for(4, 4));
  const Chooser shared(ChoiceTable::built_in(), 4, 2), apart(ChoiceTable::built_in(), 4, 4);
  EXPECT_EQ(shared.choose(kAllReduce, 1 << 20, kCanonical), Algorithm::hierarchical);
  EXPECT_EQ(apart.choose(kAllReduce, 1 << 20, kCanonical), Algorithm::two_shot);
}

}  // namespace
}  // namespace tutti::internal
