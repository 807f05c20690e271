// Ranks on a machine: how far they are from each other, and what that costs an algorithm.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "plan/on_machine.h"
#include "selection/choose_text.h"
#include "tools/plan/two_sockets.h"

namespace tutti::internal::tools {
namespace {

using internal::ChoiceTable;
using internal::Chooser;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr std::size_t kMiB = 1 << 20;

std::vector<MachineCandidate> candidates_of(const std::string& machine, const Question& question) {
  const int ranks = question.layout.ranks();
  const ChoiceTable& table = ChoiceTable::built_in();
  return candidates_on(placed_on(machine, ranks), question, Chooser(table, ranks, 1), distance_costs(table, ""));
}

const MachineCandidate& the(const std::vector<MachineCandidate>& all, Algorithm algorithm, const std::string& by = "") {
  const auto found = std::ranges::find_if(
      all, [&](const auto& each) { return each.candidate.entry->algorithm == algorithm && each.by == by; });
  EXPECT_NE(found, all.end()) << to_string(algorithm) << " by " << by;
  return *found;
}

std::vector<std::string> names_of(const std::vector<Grouping>& groupings) {
  std::vector<std::string> names;
  for (const Grouping& each : groupings) names.push_back(each.by + " " + std::to_string(each.count));
  return names;
}

TEST(PlacedRanks, KnowHowFarTheyAreFromEachOther) {
  const PlacedRanks placed = placed_on(kTwoSockets, 64);
  EXPECT_EQ(placed.between(0, 7), Distance::cache);
  EXPECT_EQ(placed.between(7, 8), Distance::package);
  EXPECT_EQ(placed.between(0, 31), Distance::package);
  EXPECT_EQ(placed.between(31, 32), Distance::machine);
  EXPECT_EQ(placed.between(63, 0), Distance::machine);
  EXPECT_EQ(placed_on("numa:2 core:2 pu:1", 4).between(0, 1), Distance::package) << "without packages a node is one";
  EXPECT_EQ(placed_on("numa:2 core:2 pu:1", 4).between(1, 2), Distance::machine);
  EXPECT_EQ(placed_on("package:2 core:2 pu:1", 4).between(1, 2), Distance::machine)
      << "one node for both packages brings them no nearer";
}

TEST(PlacedRanks, GroupByWhatTellsThemApart) {
  EXPECT_THAT(names_of(placed_on(kTwoSockets, 64).groupings()), ElementsAre("L3 cache 8", "memory node 2"))
      << "packages are the nodes again";
  EXPECT_THAT(names_of(placed_on(RECORDED "four_nodes.xml", 32).groupings()),
              ElementsAre("L3 cache 8", "memory node 4", "package 2"));
  EXPECT_THAT(names_of(placed_on(kTwoSockets, 8).groupings()), ElementsAre()) << "one cache has them all";
  EXPECT_THAT(names_of(placed_on(kTwoSockets, 16).groupings()), ElementsAre("L3 cache 2"));
  EXPECT_THAT(names_of(placed_on("package:2 l2:4 core:1 pu:1", 8).groupings()), ElementsAre("package 2"))
      << "a cache of its own gathers nobody";
}

TEST(PlacedRanks, AreShownAsRanges) {
  EXPECT_EQ(ranges({}), "");
  EXPECT_EQ(ranges({5}), "5");
  EXPECT_EQ(ranges({0, 1, 2, 4, 8, 9}), "0-2,4,8-9");
}

TEST(DistanceCosts, AreThoseOfATableAsFarAsItGoes) {
  const DistanceCosts built_in = distance_costs(ChoiceTable::built_in(), "built in");
  EXPECT_THAT(built_in.known[0], HasSubstr("measured: bench/results/"));
  EXPECT_THAT(built_in.known[1], HasSubstr("measured: bench/results/"));
  EXPECT_THAT(built_in.known[2], HasSubstr("assumed"));
  for (const double bytes : {8.0, 4096.0, 65536.0, 1048576.0}) {
    EXPECT_LT(built_in.links[0].arrival.at(bytes), built_in.links[1].arrival.at(bytes));
    EXPECT_LE(built_in.links[0].busy.at(bytes), built_in.links[1].busy.at(bytes));
    EXPECT_DOUBLE_EQ(built_in.links[2].arrival.at(bytes), 2 * built_in.links[1].arrival.at(bytes));
  }
  const ChoiceTable measured = internal::parse_table("tutti table 1\nshm 8 1 0.5\nshm 1M 100 90\nreduce 8 7\n", "t");
  const DistanceCosts costs = distance_costs(measured, "my.table");
  EXPECT_EQ(costs.known[0], "measured: my.table");
  EXPECT_THAT(costs.known[1], HasSubstr("assumed"));
  EXPECT_DOUBLE_EQ(costs.links[0].arrival.at(kMiB), 100);
  EXPECT_DOUBLE_EQ(costs.links[1].arrival.at(kMiB) / 100,
                   built_in.links[1].arrival.at(kMiB) / built_in.links[0].arrival.at(kMiB));
  EXPECT_DOUBLE_EQ(costs.reduce.at(8), 7);
  EXPECT_EQ(costs.reduce_known, "measured: my.table");
}

TEST(OnMachine, RanksOfOneCachePayItsLinksAlone) {
  const Question question{Collective::all_reduce, Layout::of(4), 64 << 10};
  const DistanceCosts costs = distance_costs(ChoiceTable::built_in(), "");
  const auto us = [&](const std::string& machine) {
    return the(candidates_of(machine, question), Algorithm::two_shot).candidate.cost->us;
  };
  CostModel near;
  near.local = costs.at(Distance::cache);
  near.reduce = costs.reduce;
  EXPECT_DOUBLE_EQ(us("l3:1 core:4 pu:1"),
                   price_of(*find_algorithm(Collective::all_reduce, Algorithm::two_shot), 1, question, near).us);
  EXPECT_LT(us("l3:1 core:4 pu:1"), us("package:1 l3:2 core:2 pu:1"));
  EXPECT_LT(us("package:1 l3:2 core:2 pu:1"), us("package:1 l3:4 core:1 pu:1"));
  EXPECT_LT(us("package:1 l3:4 core:1 pu:1"), us("package:4 l3:1 core:1 pu:1"));
}

TEST(OnMachine, CountsWhatCrossesAndWhoCombines) {
  const auto all = candidates_of(kTwoSockets, {Collective::all_reduce, Layout::of(64), kMiB});
  const Traffic direct = the(all, Algorithm::two_shot).traffic;
  EXPECT_EQ(direct.across_caches, 2 * kMiB / 64 * 64 * 56) << "an input and a result of a slice for each pair";
  EXPECT_EQ(direct.across_packages, 2 * kMiB / 64 * 64 * 32);
  EXPECT_EQ(direct.peers, 63);
  EXPECT_EQ(direct.rings, 64 * 63);
  EXPECT_EQ(direct.combining, 64);
  EXPECT_EQ(direct.inputs, 64);
  EXPECT_EQ(direct.far_inputs, 56);
  const Traffic by_cache = the(all, Algorithm::hierarchical, "L3 cache").traffic;
  EXPECT_EQ(by_cache.across_caches, 64 * 2 * 7 * kMiB / 8 / 8) << "2 (h-1)/h M/g for each rank";
  EXPECT_EQ(by_cache.peers, 14);
  EXPECT_EQ(by_cache.far_inputs, 7);
  EXPECT_EQ(the(all, Algorithm::hierarchical, "memory node").traffic.across_packages, 64 * 2 * kMiB / 2 / 32);
  const auto small = candidates_of(kTwoSockets, {Collective::all_reduce, Layout::of(64), 1 << 10});
  EXPECT_EQ(the(small, Algorithm::recursive_doubling).traffic.rings, 0) << "it all fits announcements";
  EXPECT_EQ(the(small, Algorithm::recursive_doubling).traffic.peers, 6);
  const auto rows = candidates_of(kTwoSockets, {Collective::all_to_all, Layout::of(64), kMiB});
  EXPECT_EQ(the(rows, Algorithm::one_shot).traffic.across_caches, kMiB / 64 * 64 * 56);
}

}  // namespace
}  // namespace tutti::internal::tools
