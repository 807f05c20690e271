// The algorithms on real elements, under an adversary who chooses when what moves: lengths that do not divide, in place
// or not.
#include <gtest/gtest.h>

#include "brief.h"
#include "collectives/sweep.h"
#include "schedule/interpret.h"

namespace tutti::internal {
namespace {

void expect_right(const AlgorithmEntry& entry, const Layout& layout, const Message& message, std::size_t count,
                  std::uint64_t seed) {
  for (const bool in_place : {false, true}) {
    const std::vector<Schedule> schedules = build_all(entry, layout,
                                                      {.root = message.root,
                                                       .chunks = message.chunks,
                                                       .in_place = in_place,
                                                       .copies_once = message.copies_once,
                                                       .copies_inputs = message.copies_inputs});
    const auto run = interpret(schedules, layout, goal_of(entry, message.root), count, in_place, seed);
    EXPECT_EQ(run.error_text, "") << name_of(entry) << ", " << layout.ranks() << " ranks, " << layout.leaves()
                                  << " leaves, " << in_words(layout.host) << ", root " << message.root << ", "
                                  << message.chunks << " chunks, " << count << " elements"
                                  << (in_place ? ", in place" : "") << ", seed " << seed;
  }
}

TEST(Catalogue, GivesTheRightElementsForEveryLength) {
  for (const AlgorithmEntry& entry : catalogue())
    for (int n = 1; n <= (kBrief ? 7 : 9); ++n) {
      const std::size_t ranks = n;
      std::uint64_t seed = 0;
      for (std::size_t count : {std::size_t{0}, std::size_t{1}, ranks - 1, ranks, ranks + 1, 11 * ranks + 5})
        for (int chunks : chunks_of(entry)) {
          ++seed;
          for (const bool copies : entry.copied_once != Copied::nothing ? std::vector{false, true} : std::vector{false})
            expect_right(entry, Layout::of(n),
                         {.root = static_cast<int>(seed % ranks),
                          .chunks = chunks,
                          .copies_once = copies,
                          .copies_inputs = copies && seed % 2 == 0},
                         count, seed);
        }
    }
}

TEST(HostAware, GiveTheRightElementsWhereverTheRanksAre) {
  std::mt19937 random(6);
  std::uint64_t seed = 0;
  for (const AlgorithmEntry& entry : catalogue())
    if (looks_at_hosts(entry))
      for (int n = 2; n <= 9; ++n)
        for (const std::vector<int>& hosts : placements(n, random))
          for (int chunks : entry.pipelined ? std::vector{1, 3} : std::vector{1}) {
            ++seed;
            expect_right(entry, on_hosts(hosts), {.root = static_cast<int>(seed) % n, .chunks = chunks},
                         random() % (7 * n), seed);
          }
}

TEST(Catalogue, GivesTheRightElementsForLeavesSpreadInAnyWay) {
  std::mt19937 random(3);
  for (const AlgorithmEntry& entry : catalogue()) {
    if (!entry.several_leaves || !traits_of(entry.collective).combines()) continue;
    for (int i = 0; i < 60; ++i) {
      const int n = 1 + static_cast<int>(random() % 7), leaves = 1 + static_cast<int>(random() % 19);
      expect_right(entry, random_layout(n, leaves, random), {.chunks = entry.pipelined ? 1 + i % 3 : 1}, random() % 30,
                   i);
    }
  }
}

TEST(Catalogue, GivesTheSameBitsWhateverTheCanonicalAlgorithmAndTheSpreadOfLeaves) {
  std::mt19937 random(4);
  constexpr int kLeaves = 11;
  std::vector<std::uint64_t> first;
  for (const AlgorithmEntry& entry : catalogue()) {
    if (entry.collective != Collective::all_reduce || !entry.canonical) continue;
    for (int n : {1, 2, 3, 5, 11}) {
      const Layout layout = entry.several_leaves ? random_layout(n, kLeaves, random) : Layout::of(kLeaves);
      const auto run = interpret(build_all(entry, layout, {}), layout, goal_of(entry), 23, false, n);
      ASSERT_EQ(run.error_text, "") << name_of(entry);
      if (first.empty()) first = run.outputs[0];
      for (const auto& output : run.outputs)
        EXPECT_EQ(output, first) << name_of(entry) << " on " << layout.ranks() << " ranks";
    }
  }
}

}  // namespace
}  // namespace tutti::internal
