#include "topology/machine.h"

#include <gtest/gtest.h>

#include <fstream>
#include <set>
#include <sstream>

#include "tutti/error.h"

namespace tutti::internal::topology {
namespace {

using Places = std::vector<Processors>;

Machine recorded(const std::string& name) {
  std::ifstream file(RECORDED + name);
  std::stringstream text;
  text << file.rdbuf();
  return Machine::recorded(text.str());
}

Places place(const Machine& machine, int ranks) { return machine.place(machine.processors(), ranks); }

TEST(Place, ARankHasACoreWithAllItsThreads) {
  const Machine machine = Machine::synthetic("package:2 numa:1 l3:2 core:4 pu:2");
  EXPECT_EQ(place(machine, 3), (Places{{0, 1}, {2, 3}, {4, 5}}));
  const Places all = place(machine, 16);
  ASSERT_EQ(all.size(), 16u);
  for (int rank = 0; rank < 16; ++rank) EXPECT_EQ(all[rank], (Processors{2 * rank, 2 * rank + 1}));
}

TEST(Place, TheFirstPackageIsFilledFirst) {
  const Machine machine = recorded("two_packages.xml");
  EXPECT_EQ(place(machine, 4), (Places{{0, 8}, {1, 9}, {2, 10}, {3, 11}}));
  EXPECT_EQ(place(machine, 6), (Places{{0, 8}, {1, 9}, {2, 10}, {3, 11}, {4, 12}, {5, 13}}));
}

TEST(Place, SecondThreadsAreUsedOnceEveryCoreHasARank) {
  const Machine machine = recorded("two_packages.xml");
  const Places ten = place(machine, 10);
  EXPECT_EQ(ten, (Places{{0}, {8}, {1}, {9}, {2, 10}, {3, 11}, {4, 12}, {5, 13}, {6, 14}, {7, 15}}));
  const Places sixteen = place(machine, 16);
  EXPECT_EQ(sixteen.front(), Processors{0});
  EXPECT_EQ(sixteen[1], Processors{8}) << "the other thread of the same core";
  EXPECT_EQ(sixteen.back(), Processors{15});
}

TEST(Place, RanksThatOutnumberTheProcessorsAreNotBound) {
  EXPECT_EQ(place(recorded("two_cores.xml"), 2), (Places{{0}, {1}}));
  EXPECT_EQ(place(recorded("two_cores.xml"), 3), Places{});
  EXPECT_EQ(place(Machine::synthetic("core:2 pu:1"), 3), Places{});
  EXPECT_EQ(place(recorded("two_packages.xml"), 17), Places{});
  EXPECT_EQ(place(recorded("two_packages.xml"), 0), Places{});
}

TEST(Position, IsThatOfTheCacheTheNodeAndThePackage) {
  const Machine machine = recorded("two_sockets.xml");
  const Places places = place(machine, 64);
  ASSERT_EQ(places.size(), 64u);
  for (int rank = 0; rank < 64; ++rank) {
    const Position position = machine.position_of(places[rank]);
    EXPECT_EQ(position.cache_level, 3);
    EXPECT_EQ(position.cache, rank / 8);
    EXPECT_EQ(position.cache_bytes, 32u << 20);
    EXPECT_EQ(position.node, rank / 32);
    EXPECT_EQ(position.package, rank / 32);
  }
}

TEST(Position, OfAPackageWithSeveralNodes) {
  const Machine machine = recorded("four_nodes.xml");
  const Places places = place(machine, 32);
  ASSERT_EQ(places.size(), 32u) << "a hardware thread each";
  for (int rank = 0; rank < 32; ++rank) {
    const Position position = machine.position_of(places[rank]);
    EXPECT_EQ(position.cache, rank / 4);
    EXPECT_EQ(position.node, rank / 8);
    EXPECT_EQ(position.package, rank / 16);
  }
}

TEST(Position, IsNowhereThatNoPartHasAllOfIt) {
  const Machine machine = recorded("two_sockets.xml");
  const Position in_package = machine.position_of({0, 8});
  EXPECT_EQ(in_package.cache_level, 0);
  EXPECT_EQ(in_package.cache, -1);
  EXPECT_EQ(in_package.package, 0);
  EXPECT_EQ(machine.position_of({0, 63}).package, -1);
  EXPECT_EQ(machine.position_of({}).node, -1);
  const Position second_level = Machine::synthetic("package:1 l2:4 core:2 pu:1").position_of({2});
  EXPECT_EQ(second_level.cache_level, 2) << "the largest there is";
  EXPECT_EQ(second_level.cache, 1);
}

TEST(Place, KeepsToWhatIsAllowed) {
  const Machine machine = Machine::synthetic("numa:4 core:8 pu:1");
  EXPECT_EQ(machine.place({3, 4, 5, 30}, 3), (Places{{3}, {4}, {5}}));
  EXPECT_EQ(machine.place({3, 4, 5, 30}, 4), (Places{{3}, {4}, {5}, {30}}));
  EXPECT_EQ(machine.place({3, 4, 5, 30}, 5), Places{});
  EXPECT_EQ(machine.place({}, 1), Places{});
  EXPECT_EQ(machine.place({100}, 1), Places{}) << "which this machine has not";
}

TEST(Place, AllowedThreadsOfACoreCountAlone) {
  const Machine machine = recorded("two_packages.xml");
  EXPECT_EQ(machine.place({0, 1, 8}, 2), (Places{{0, 8}, {1}}));
  EXPECT_EQ(machine.place({0, 1, 8}, 3), (Places{{0}, {8}, {1}}));
  EXPECT_EQ(machine.place({1, 2, 10}, 3), (Places{{1}, {2}, {10}}));
  EXPECT_EQ(machine.place({8}, 1), (Places{{8}}));
}

TEST(Place, TakesTheFirstPartThatHasRoomForAll) {
  const Machine machine = Machine::synthetic("package:2 l3:2 core:4 pu:1");
  EXPECT_EQ(place(machine, 4), (Places{{0}, {1}, {2}, {3}}));
  // One core is left under the first cache, three under the second, four under each of the other package.
  const Processors left = {3, 4, 5, 6, 8, 9, 10, 11, 12, 13, 14, 15};
  EXPECT_EQ(machine.place(left, 1), (Places{{3}}));
  EXPECT_EQ(machine.place(left, 3), (Places{{4}, {5}, {6}})) << "a cache";
  EXPECT_EQ(machine.place(left, 4), (Places{{3}, {4}, {5}, {6}})) << "a package";
  EXPECT_EQ(machine.place(left, 5), (Places{{8}, {9}, {10}, {11}, {12}})) << "the other package";
  EXPECT_EQ(machine.place(left, 9).front(), Processors{3}) << "all";
}

TEST(Place, NoProcessorIsGivenTwice) {
  for (const char* description : {"package:2 numa:1 l3:2 core:4 pu:2", "core:2 pu:1", "numa:4 core:8 pu:1", "pu:6",
                                  "package:2 [numa] [numa] core:3 pu:4"}) {
    const Machine machine = Machine::synthetic(description);
    const Processors all = machine.processors();
    for (int ranks = 1; ranks <= static_cast<int>(all.size()); ++ranks) {
      const Places places = place(machine, ranks);
      ASSERT_EQ(places.size(), static_cast<std::size_t>(ranks)) << description;
      std::set<int> given;
      for (const Processors& mine : places) {
        ASSERT_FALSE(mine.empty());
        for (const int processor : mine) ASSERT_TRUE(given.insert(processor).second) << description << " " << ranks;
      }
      EXPECT_FALSE(must_share(places));
    }
  }
}

TEST(Place, WithoutCoresEveryProcessorIsOne) {
  const Machine machine = Machine::synthetic("numa:2 pu:3");
  EXPECT_EQ(machine.cores(machine.processors()).size(), 6u);
  EXPECT_EQ(place(machine, 4), (Places{{0}, {1}, {2}, {3}}));
}

TEST(NodeOf, IsTheNodeThatHasAllOfThem) {
  const Machine machine = Machine::synthetic("numa:4 core:8 pu:1");
  EXPECT_EQ(machine.node_of({0}), 0);
  EXPECT_EQ(machine.node_of({7}), 0);
  EXPECT_EQ(machine.node_of({8, 15}), 1);
  EXPECT_EQ(machine.node_of({24, 25, 31}), 3);
  EXPECT_EQ(recorded("two_packages.xml").node_of({4, 12}), 1);
}

TEST(NodeOf, IsNoneForWhoMayRunNearSeveral) {
  const Machine machine = Machine::synthetic("numa:4 core:8 pu:1");
  EXPECT_EQ(machine.node_of({7, 8}), std::nullopt);
  EXPECT_EQ(machine.node_of(machine.processors()), std::nullopt);
  EXPECT_EQ(machine.node_of({}), std::nullopt);
  EXPECT_EQ(machine.node_of({100}), std::nullopt);
}

TEST(NodeOf, IsNoneWhereThereIsButOne) {
  EXPECT_EQ(recorded("two_cores.xml").node_of({0}), std::nullopt);
  EXPECT_EQ(Machine::synthetic("core:2 pu:1").node_of({0}), std::nullopt);
}

TEST(NodeOf, IsTheNearestOfNodesWithinEachOther) {
  // Two nodes for each package, and one by the whole machine.
  const Machine machine = Machine::synthetic("[numa] package:2 [numa] [numa] core:2 pu:1");
  const auto first = machine.node_of({0}), second = machine.node_of({2});
  ASSERT_TRUE(first && second);
  EXPECT_NE(first, second);
  EXPECT_EQ(machine.node_of({0, 2}), std::nullopt) << "the one that is as near to all says nothing";
}

TEST(Machine, WhatHwlocCannotReadIsAnError) {
  EXPECT_THROW(Machine::synthetic("moon:3"), Error);
  EXPECT_THROW(Machine::recorded("<nothing/>"), Error);
}

TEST(Machine, HereHasTheProcessorsOfThisProcess) {
  const Machine machine = Machine::here();
  const Processors allowed = allowed_processors();
  const Places cores = machine.cores(allowed);
  ASSERT_FALSE(cores.empty());
  std::size_t threads = 0;
  for (const Processors& core : cores) threads += core.size();
  EXPECT_EQ(threads, allowed.size());
}

}  // namespace
}  // namespace tutti::internal::topology
