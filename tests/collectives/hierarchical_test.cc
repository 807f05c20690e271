// The algorithms that look at hosts, wherever the ranks are: proven, and hierarchical as sparing between hosts as it
// can be.
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "brief.h"
#include "collectives/held_by_hosts.h"
#include "collectives/sweep.h"

namespace tutti::internal {
namespace {

std::vector<const AlgorithmEntry*> hierarchical() {
  std::vector<const AlgorithmEntry*> entries;
  for (const AlgorithmEntry& entry : catalogue())
    if (entry.algorithm == Algorithm::hierarchical) entries.push_back(&entry);
  return entries;
}

std::vector<const AlgorithmEntry*> looking_at_hosts() {
  std::vector<const AlgorithmEntry*> entries;
  for (const AlgorithmEntry& entry : catalogue())
    if (looks_at_hosts(entry)) entries.push_back(&entry);
  return entries;
}

TEST(HostAware, AreTheHierarchicalOnesAtLeast) {
  for (const AlgorithmEntry* entry : hierarchical()) EXPECT_TRUE(looks_at_hosts(*entry)) << name_of(*entry);
}

TEST(Hierarchical, IsThereForEveryCollectiveThatMovesData) { EXPECT_EQ(hierarchical().size(), 4u); }

TEST(HostAware, AreProvenWhereverTheRanksAre) {
  std::mt19937 random(7);
  for (int n = 1; n <= (kBrief ? 10 : 16); ++n)
    for (const std::vector<int>& hosts : placements(n, random))
      for (const AlgorithmEntry* entry : looking_at_hosts())
        for (int chunks : chunks_of(*entry))
          expect_proof(*entry, on_hosts(hosts), {.root = static_cast<int>(random() % n), .chunks = chunks});
}

TEST(HostAware, AreProvenForEveryRootOfABroadcast) {
  std::mt19937 random(8);
  for (const AlgorithmEntry* entry : looking_at_hosts()) {
    if (entry->collective != Collective::broadcast) continue;
    for (int n = 1; n <= 9; ++n)
      for (const std::vector<int>& hosts : placements(n, random))
        for (int root = 0; root < n; ++root)
          expect_proof(*entry, on_hosts(hosts), {.root = root, .chunks = entry->pipelined ? 1 + root % 3 : 1});
  }
}

TEST(HostAware, AreProvenForLeavesAndRanksSpreadInAnyWay) {
  std::mt19937 random(9);
  for (const AlgorithmEntry* entry : looking_at_hosts()) {
    if (!entry->several_leaves) continue;
    for (int i = 0; i < 150; ++i) {
      const int n = 1 + static_cast<int>(random() % 12), leaves = 1 + static_cast<int>(random() % 40);
      Layout layout = random_layout(n, leaves, random);
      for (int& host : layout.host) host = static_cast<int>(random() % 4);
      expect_proof(*entry, layout, {.root = n - 1, .chunks = entry->pipelined ? 1 + i % 4 : 1});
    }
  }
}

TEST(Hierarchical, TakesAtMostFourRoundsWhereHostsHoldAlignedPowersOfTwo) {
  const std::map<Collective, int> most{
      {Collective::all_reduce, 4}, {Collective::reduce_scatter, 2}, {Collective::all_gather, 2}};
  for (const AlgorithmEntry* entry : hierarchical())
    for (int g : {1, 2, 4, 8})
      for (int h : {1, 2, 3, 5, 8}) {
        std::vector<int> hosts;
        for (int rank = 0; rank < h * g; ++rank) hosts.push_back(rank / g);
        const Proof proof = prove(*entry, on_hosts(hosts), {}, goal_of(*entry).order);
        const int rounds = entry->collective == Collective::broadcast ? h + 1 : most.at(entry->collective);
        EXPECT_LE(proof.rounds, rounds) << name_of(*entry) << " on " << h << " hosts of " << g;
      }
}

// Inputs and partial results are sent from elsewhere than the output.
TEST(Hierarchical, ResultsCrossToEachHostOnce) {
  std::mt19937 random(10);
  for (int n = 2; n <= 12; ++n)
    for (const std::vector<int>& hosts : placements(n, random))
      for (const AlgorithmEntry* entry : hierarchical()) {
        std::map<std::tuple<int, int, int>, int> entered;  // host, slice, chunk
        for (const Schedule& schedule : build_all(*entry, on_hosts(hosts), {.root = n - 1, .chunks = 2}))
          for (const Step& step : schedule.steps)
            if (step.kind == StepKind::send && step.region.space == Space::output &&
                hosts[schedule.rank] != hosts[step.peer])
              ++entered[{hosts[step.peer], step.region.slice, step.region.chunk}];
        for (const auto& [what, times] : entered) EXPECT_EQ(times, 1) << name_of(*entry) << ", " << in_words(hosts);
      }
}

// A channel shows one message at a time.
TEST(HostAware, NoReduceTakesTwoMessagesOfOnePeer) {
  std::mt19937 random(11);
  for (int n = 2; n <= (kBrief ? 12 : 24); ++n)
    for (const std::vector<int>& hosts : placements(n, random))
      for (const AlgorithmEntry* entry : looking_at_hosts())
        for (const Schedule& schedule : build_all(*entry, on_hosts(hosts), {.chunks = chunks_of(*entry).back()}))
          for (const Step& step : schedule.steps) {
            if (step.kind != StepKind::reduce) continue;
            std::set<int> peers;
            for (const Source& source : schedule.sources_of(step)) {
              const bool twice = source.peer != kLocal && !peers.insert(source.peer).second;
              EXPECT_FALSE(twice) << name_of(*entry) << ", " << in_words(hosts) << ", rank " << schedule.rank;
            }
          }
}

// How many values cross between hosts when T is evaluated so that each node lies on hosts_of[node.index()].
int crossings(Node node, int above, const std::vector<int>& host) {
  const int here = host[node.index()];
  if (node.is_leaf()) return here != above;
  return (here != above) + crossings({node.lo, node.split()}, here, host) +
         crossings({node.split(), node.hi}, here, host);
}

// Tries all hosts for each inner node, of which there are n - 1.
int fewest_crossings(const std::vector<int>& hosts, int at) {
  const int n = static_cast<int>(hosts.size()), count = *std::max_element(hosts.begin(), hosts.end()) + 1;
  std::vector<int> host(2 * n - 1, 0);
  for (int rank = 0; rank < n; ++rank) host[2 * rank] = hosts[rank];
  int fewest = 2 * n;
  for (int inner = 1; inner < 2 * n - 1 || n == 1;) {
    fewest = std::min(fewest, crossings({0, n}, at, host));
    for (inner = 1; inner < 2 * n - 1 && ++host[inner] == count; inner += 2) host[inner] = 0;
    if (n == 1) break;
  }
  return fewest;
}

TEST(HostsOfNodes, LetAsFewValuesCrossAsAnyEvaluationOfT) {
  std::mt19937 random(12);
  for (int n = 1; n <= 7; ++n)
    for (int i = 0; i < 25; ++i) {
      std::vector<int> hosts;
      for (int rank = 0; rank < n; ++rank) hosts.push_back(static_cast<int>(random() % 3));
      const Layout layout = on_hosts(hosts);
      const Hosts numbered(layout);
      for (int rank = 0; rank < n; ++rank) hosts[rank] = numbered.of(rank);
      const HostsOfNodes nodes(layout, numbered);
      for (int at = 0; at < numbered.count(); ++at)
        EXPECT_EQ(crossings({0, n}, at, nodes.ending_on(at)), fewest_crossings(hosts, at))
            << in_words(hosts) << ", result on " << at;
    }
}

// A node whose leaves all lie on one host crosses whole, so no host sends two halves of it.
TEST(HostsOfNodes, KeepTogetherWhatOneHostHas) {
  std::mt19937 random(13);
  for (int n = 1; n <= 16; ++n)
    for (const std::vector<int>& placement : placements(n, random)) {
      const Layout layout = on_hosts(placement);
      const Hosts hosts(layout);
      const HostsOfNodes nodes(layout, hosts);
      for (int lo = 0; lo < n; ++lo)
        for (int size = 2; lo % size == 0 && lo + size <= n; size *= 2) {
          const Node node{lo, lo + size};
          const int host = hosts.of(lo);
          bool together = true;
          for (int rank = lo; rank < lo + size; ++rank) together = together && hosts.of(rank) == host;
          if (!together) continue;
          for (int at = 0; at < hosts.count(); ++at) EXPECT_EQ(nodes.ending_on(at)[node.index()], host);
        }
    }
}

TEST(CarriersInTurn, CarryEquallyManySlices) {
  std::mt19937 random(14);
  for (int n = 1; n <= 16; ++n)
    for (const std::vector<int>& placement : placements(n, random)) {
      const Hosts hosts(on_hosts(placement));
      const Carriers carriers = carriers_in_turn(hosts);
      for (int host = 0; host < hosts.count(); ++host) {
        std::map<int, int> carried;
        for (int rank : hosts.ranks(host)) carried[rank] = 0;
        for (int slice = 0; slice < n; ++slice) {
          const int carrier = carriers[slice][host];
          ASSERT_EQ(hosts.of(carrier), host);
          if (hosts.of(slice) == host)
            EXPECT_EQ(carrier, slice);
          else
            ++carried[carrier];
        }
        const auto [least, most] = std::minmax_element(
            carried.begin(), carried.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
        EXPECT_LE(most->second, least->second + 1) << in_words(placement);
      }
    }
}

}  // namespace
}  // namespace tutti::internal
