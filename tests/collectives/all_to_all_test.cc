// all_to_all in place: what is proven of ranks whose output is the memory of their input, and what is not.
#include <gtest/gtest.h>

#include "collectives/formula.h"
#include "collectives/sweep.h"
#include "schedule/interpret.h"

namespace tutti::internal {
namespace {

std::vector<const AlgorithmEntry*> of_all_to_all() {
  std::vector<const AlgorithmEntry*> found;
  for (const AlgorithmEntry& entry : catalogue())
    if (entry.collective == Collective::all_to_all) found.push_back(&entry);
  return found;
}

constexpr Goal kApart{.collective = Collective::all_to_all},
    kInPlace{.collective = Collective::all_to_all, .in_place = true};

TEST(AllToAll, InPlaceIsRefusedWithoutACopyOfTheInput) {
  for (const AlgorithmEntry* entry : of_all_to_all())
    for (int n = 2; n <= 9; ++n) {
      const Layout layout = Layout::of(n);
      const auto schedules = build_all(*entry, layout, {});
      const bool holds = verify(schedules, layout, kInPlace).holds;
      // Of few ranks, rows that go with others are packed before any is overwritten.
      EXPECT_TRUE(!holds || entry->joins_rows) << name_of(*entry) << " on " << n;
      bool goes_wrong = false;
      for (std::uint64_t seed = 0; seed < 20 && !goes_wrong; ++seed)
        goes_wrong =
            !interpret(schedules, layout, kInPlace, 3 * static_cast<std::size_t>(n), true, seed).error_text.empty();
      EXPECT_NE(goes_wrong, holds) << name_of(*entry) << " on " << n << ": the refusal is for nothing, or lacks";
    }
}

TEST(AllToAll, EachRankMayBeInPlaceOrNot) {
  std::mt19937 random(7);
  for (const AlgorithmEntry* entry : of_all_to_all())
    for (int n = 1; n <= 12; ++n) {
      const Layout layout = Layout::of(n);
      auto schedules = build_all(*entry, layout, {});
      const auto in_place = build_all(*entry, layout, {.in_place = true});
      for (std::size_t rank = 0; rank < schedules.size(); ++rank)
        if (random() % 2 == 0) schedules[rank] = in_place[rank];
      const Proof proof = verify(schedules, layout, kApart);
      EXPECT_TRUE(proof.holds) << name_of(*entry) << " on " << n << ": " << proof.reason;
    }
}

// Rows are numbered beyond 65535.
TEST(AllToAll, TakesThreeHundredRanks) {
  for (const AlgorithmEntry* entry : of_all_to_all()) {
    constexpr int kRanks = 300;
    const Layout layout = Layout::of(kRanks);
    std::vector<Schedule> schedules;
    for (int rank = 0; rank < kRanks; ++rank) schedules.push_back(entry->schedule(rank, layout, {}));
    const Proof proof = verify(schedules, layout, kApart);
    EXPECT_TRUE(proof.holds) << name_of(*entry) << ": " << proof.reason;
    EXPECT_EQ(static_cast<double>(proof.messages), evaluate(entry->messages, {.n = kRanks}).value);
  }
}

}  // namespace
}  // namespace tutti::internal
