// The plan of every algorithm of the catalogue is proven, with all that it has fused; plans that are not their
// schedules' are refused.
#include "executor/plan_proof.h"

#include <gtest/gtest.h>

#include <iostream>
#include <set>

#include "brief.h"
#include "executor/plan_sweep.h"

namespace tutti::internal {
namespace {

constexpr int kMaxRanksOfPlans = 16;

struct Fused {
  int plans = 0, pushes = 0, finishers = 0;
  std::set<std::string> pushing, finishing;  // algorithms
};

void expect_proven(const PlannedCall& planned, Fused& fused) {
  const Proof proof = planned.prove();
  EXPECT_TRUE(proof.holds) << planned.name() << ": " << proof.reason;
  for (const auto& plan : planned.plans) {
    ++fused.plans;
    for (const PlanStep& step : plan->steps) {
      const auto* const reduce = std::get_if<ReduceStep>(&step);
      if (reduce == nullptr) continue;
      fused.pushes += static_cast<int>(reduce->pushes);
      fused.finishers += reduce->finisher != 0;
      if (reduce->pushes > 0) fused.pushing.insert(name_of(*planned.entry));
      if (reduce->finisher > 0) fused.finishing.insert(name_of(*planned.entry));
    }
  }
}

// Counts that all chunks share evenly, that they do not, fewer than ranks, and none.
std::vector<std::uint64_t> counts(int ranks) {
  const auto n = static_cast<std::uint64_t>(ranks);
  return {n * 320, 1000, n * 16 + 1, n - 1, 0};
}

// One of these calls, and a way to cut it.
void expect_proven(const AlgorithmEntry& entry, const Layout& layout, int chunks, std::uint64_t count, Fused& fused) {
  const bool small = count % 2 == 1;
  const Call call{.dtype = small ? DType::bfloat16 : DType::float32,
                  .op = small ? Op::avg : Op::sum,
                  .count = count,
                  .root = static_cast<std::uint16_t>(count % static_cast<std::uint64_t>(layout.ranks()))};
  expect_proven({entry, layout, call, chunks, {}}, fused);
  if (!takes_both(entry)) expect_proven({entry, layout, call, chunks, {.in_place = true}}, fused);
  if (count == 1000 && entry.collective != Collective::barrier)
    expect_proven({entry, layout, call, chunks, {.part_bytes = 1024, .packed = chunks % 2 == 0}}, fused);
}

TEST(PlanProof, HoldsForEveryAlgorithmWithItsFusedStores) {
  Fused fused;
  std::mt19937 random(3);
  for (const AlgorithmEntry& entry : catalogue())
    for (int n = 1; n <= (kBrief ? 7 : kMaxRanksOfPlans); ++n)
      for (const int chunks : chunks_of(entry)) {
        const std::vector<std::uint64_t> all = counts(n);
        for (std::size_t i = 0; i < all.size(); ++i)  // of more chunks some: they take longest
          if (chunks == 1 || i % 2 == static_cast<std::size_t>(chunks % 2))
            expect_proven(entry, Layout::of(n), chunks, all[i], fused);
        if (entry.algorithm != Algorithm::hierarchical) continue;
        for (const std::vector<int>& hosts : placements(n, random))
          expect_proven(entry, on_hosts(hosts), chunks, all[random() % all.size()], fused);
      }
  std::cout << fused.plans << " plans with " << fused.pushes << " fused stores of " << fused.pushing.size()
            << " algorithms, and " << fused.finishers << " jumps of " << fused.finishing.size() << "\n";
  EXPECT_GE(fused.pushing.size(), 5u);
  EXPECT_GE(fused.finishing.size(), 2u);
}

// Copies from and to a device go by rows.
TEST(PlanProof, RefusesRowsThatTheCallersBuffersDoNotHave) {
  const AlgorithmEntry& entry = *find_algorithm(Collective::all_gather, Algorithm::ring);
  PlannedCall planned(entry, Layout::of(3), {.dtype = DType::float32, .count = 1000}, 1, {});
  EXPECT_TRUE(planned.prove().holds);
  Plan& plan = *planned.plans[1];
  plan.input_rows = 3;
  plan.input_bytes = 3 * plan.whole_row_bytes;
  EXPECT_FALSE(planned.prove().holds);
}

}  // namespace
}  // namespace tutti::internal
