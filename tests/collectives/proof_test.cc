// Every algorithm of the catalogue is proven for every number of ranks up to 64, and so are the catalogue's claims.
#include <gtest/gtest.h>

#include <algorithm>

#include "collectives/sweep.h"

namespace tutti::internal {
namespace {

// The full product of ranks, roots and chunks is in slow_test.cc.
TEST(Catalogue, IsProvenForEveryNumberOfRanks) {
  for (const AlgorithmEntry& entry : catalogue())
    for (int n = 1; n <= kMaxRanksQuickly; ++n) {
      const std::vector<int> chunks = chunks_of(entry);
      expect_proof(entry, Layout::of(n), {.root = n / 2, .chunks = chunks[n % chunks.size()]});
    }
}

TEST(Catalogue, IsProvenForEveryRootAndNumberOfChunks) {
  for (const AlgorithmEntry& entry : catalogue())
    for (int n = 1; n <= 16; ++n)
      for (int root = 0; root < (traits_of(entry.collective).has_root() ? n : 1); ++root)
        for (int chunks : chunks_of(entry)) expect_proof(entry, Layout::of(n), {.root = root, .chunks = chunks});
}

TEST(Catalogue, KeepsTheCanonicalOrderExactlyWhereItSaysSo) {
  for (const AlgorithmEntry& entry : catalogue()) {
    if (!traits_of(entry.collective).combines()) continue;
    for (int n = 3; n <= 20; ++n) {
      const Proof proof = prove(entry, Layout::of(n), {}, Order::canonical);
      EXPECT_EQ(proof.holds, entry.canonical) << name_of(entry) << " on " << n << " ranks: " << proof.reason;
      const Proof any = prove(entry, Layout::of(n), {}, Order::any);
      EXPECT_EQ(any.canonical, entry.canonical) << name_of(entry) << " on " << n << " ranks";
    }
  }
}

TEST(Ring, KeepsTheCanonicalOrderOnTwoRanks) {
  for (Collective collective : {Collective::all_reduce, Collective::reduce_scatter})
    for (int n : {1, 2})
      EXPECT_TRUE(
          prove(*find_algorithm(collective, Algorithm::ring), Layout::of(n), {.chunks = 3}, Order::canonical).holds)
          << to_string(collective) << " on " << n;
}

TEST(Catalogue, IsProvenForLeavesSpreadInAnyWay) {
  std::mt19937 random(2);
  for (const AlgorithmEntry& entry : catalogue()) {
    if (!entry.several_leaves) continue;
    for (int i = 0; i < 120; ++i) {
      const int n = 1 + static_cast<int>(random() % 12), leaves = 1 + static_cast<int>(random() % 40);
      expect_proof(entry, random_layout(n, leaves, random), {.root = n - 1, .chunks = entry.pipelined ? 1 + i % 4 : 1});
    }
  }
}

TEST(Catalogue, PipelinesManyChunks) {
  for (const AlgorithmEntry& entry : catalogue())
    if (entry.pipelined)
      for (int n : {2, 5, 8, 13}) expect_proof(entry, Layout::of(n), {.chunks = 40});
}

// Partial results of 16-bit elements are twice as long as these.
TEST(TwoShot, ARowIsEitherOfPartialResultsOrOfElements) {
  const AlgorithmEntry& entry = *find_algorithm(Collective::all_reduce, Algorithm::two_shot);
  const Layout layout = Layout::of(3);
  std::vector<Schedule> schedules = build_all(entry, layout, {.copies_once = true});
  EXPECT_TRUE(verify(schedules, layout, goal_of(entry)).holds);
  const auto sent = std::ranges::find_if(schedules[0].steps, [](const Step& step) {
    return step.kind == StepKind::send && step.region.space == Space::relay;
  });
  ASSERT_NE(sent, schedules[0].steps.end());
  sent->region.space = Space::scratch;
  const Proof proof = verify(schedules, layout, goal_of(entry));
  EXPECT_NE(proof.reason.find("another step has the row in another space"), std::string::npos) << proof.reason;
}

}  // namespace
}  // namespace tutti::internal
