// Plans damaged at random, run by the real Operation over channels that do anything that a channel may: whatever this
// oracle can drive to a wrong result, a race or a deadlock, the proof of plans must have refused.
#include <gtest/gtest.h>

#include <iostream>
#include <map>

#include "brief.h"
#include "executor/plan_mutator.h"
#include "executor/plan_oracle.h"
#include "executor/tempting.h"

namespace tutti::internal {
namespace {

struct Tally {
  int accepted = 0, refused = 0, wrong = 0;  // wrong: driven there by the oracle
};

constexpr int kSeeds = 12;

std::string error_text_under_some_seed(const PlannedCall& planned) {
  for (int seed = 0; seed < kSeeds; ++seed) {
    const bool in_place = takes_both(*planned.entry) ? seed % 2 == 0 : planned.cut.in_place;
    std::string error_text = error_text_of(planned, in_place, static_cast<std::uint64_t>(seed));
    if (!error_text.empty()) return error_text;
  }
  return {};
}

// Slices are rounded up to cache lines: with few elements most are empty.
PlannedCall some_call(const AlgorithmEntry& entry, int ranks, int chunks, std::uint64_t number) {
  const bool by_slices = entry.collective == Collective::all_gather || entry.collective == Collective::reduce_scatter;
  const auto even = 16 * static_cast<std::uint64_t>(chunks) * static_cast<std::uint64_t>(by_slices ? 1 : ranks);
  const Call call{.dtype = number % 3 == 0 ? DType::bfloat16 : DType::float32,
                  .op = number % 2 == 0 ? Op::sum : Op::avg,
                  .count = number % 5 == 0 ? 5 : even + number % 7,
                  .root = static_cast<std::uint16_t>(number % static_cast<std::uint64_t>(ranks))};
  Layout layout = Layout::of(ranks);
  if (entry.algorithm == Algorithm::hierarchical)
    for (int rank = 0; rank < ranks; ++rank) layout.host[rank] = rank / 2;
  return {entry,
          layout,
          call,
          chunks,
          {.in_place = number % 2 == 0,
           .copies_once = number % 4 < 2,
           .copies_inputs = number % 8 < 2,
           .leaves_copies = number % 3 > 0}};
}

template <class Test>
void for_each_call(int rounds, Test test) {
  std::uint64_t number = 0;
  for (int round = 0; round < rounds; ++round)
    for (const AlgorithmEntry& entry : catalogue())
      for (int ranks = 2; ranks <= (kBrief ? 4 : 6); ++ranks)
        for (const int chunks : chunks_of(entry)) {
          ++number;
          test(some_call(entry, ranks, chunks, number), number);
        }
}

using Change = std::string (PlanMutator::*)(Plan&);
using Tallies = std::map<std::string, Tally>;  // by change

// Of one rank's plan.
void try_mutant(PlannedCall mutant, Change change_one, std::uint64_t seed, Tallies& tallies) {
  Plan& plan = *mutant.plans[seed % mutant.plans.size()];
  PlanMutator mutator(mutant.layout.leaves(), seed);
  const std::string change = (mutator.*change_one)(plan);
  if (change.empty()) return;
  const Proof proof = mutant.prove();
  write_out_jumps(plan);
  const std::string error_text = error_text_under_some_seed(mutant);
  EXPECT_TRUE(error_text.empty() || !proof.holds)
      << mutant.name() << ", mutant " << seed << " (" << change << "): " << error_text;
  Tally& tally = tallies[change];
  ++(proof.holds ? tally.accepted : tally.refused);
  if (!error_text.empty()) ++tally.wrong;
}

Tally sum(const Tallies& tallies) {
  Tally total;
  for (const auto& [change, tally] : tallies) {
    std::cout << change << ": " << tally.accepted << " accepted, " << tally.refused << " refused, of which "
              << tally.wrong << " were driven wrong\n";
    total.accepted += tally.accepted;
    total.refused += tally.refused;
    total.wrong += tally.wrong;
  }
  std::cout << "together " << total.wrong << " were driven wrong, and all of these are refused\n";
  return total;
}

TEST(PlanOracle, NeverGoesWrongWithWhatIsProven) {
  for_each_call(1, [](const PlannedCall& planned, std::uint64_t) {
    EXPECT_TRUE(planned.prove().holds) << planned.name();
    EXPECT_EQ(error_text_under_some_seed(planned), "") << planned.name();
  });
}

TEST(PlanMutation, OfWhatIsFusedIsRefusedWhereItDoesHarm) {
  Tallies tallies;
  for_each_call(kBrief ? 2 : 8, [&](PlannedCall mutant, std::uint64_t seed) {
    try_mutant(std::move(mutant), &PlanMutator::change_fusing, seed, tallies);
  });
  const Tally total = sum(tallies);
  EXPECT_GT(total.wrong, kBrief ? 20 : 50);
  EXPECT_GT(total.accepted, kBrief ? 10 : 50) << "harmless changes must be accepted";
}

TEST(PlanMutation, OfWhatTemptsToBeFusedIsRefusedWhereItDoesHarm) {
  for (const Tempting& example : tempting()) {
    std::cout << "-- " << example.what << "\n";
    Tallies tallies;
    for (std::uint64_t seed = 1; seed <= (kBrief ? 60 : 100); ++seed) {
      const PlannedCall planned = some_call(example.entry, example.ranks, 1, seed);
      EXPECT_EQ(planned.prove().reason + error_text_under_some_seed(planned), "") << example.what;
      try_mutant(some_call(example.entry, example.ranks, 1, seed), &PlanMutator::change_fusing, seed, tallies);
    }
    EXPECT_GT(sum(tallies).wrong, 0) << example.what;
  }
}

// The rank does not wait for what it has lent, if input and output are apart.
TEST(PlanMutation, AJumpOverALoanOfScratchIsRefused) {
  const Tempting example = tempting().back();
  int refused = 0;
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    PlannedCall mutant = some_call(example.entry, example.ranks, 1, seed);
    if (PlanMutator(mutant.layout.leaves(), seed).change_fusing(*mutant.plans[0]) != "jump") continue;
    const Proof proof = mutant.prove();
    EXPECT_FALSE(proof.holds);
    refused += proof.reason.find("its finisher has to wait") != std::string::npos;
  }
  EXPECT_GT(refused, 0);
}

TEST(PlanMutation, OfMemoryIsRefusedWhereItDoesHarm) {
  Tallies tallies;
  for_each_call(kBrief ? 1 : 4, [&](PlannedCall mutant, std::uint64_t seed) {
    try_mutant(std::move(mutant), &PlanMutator::change_memory, seed, tallies);
  });
  EXPECT_GT(sum(tallies).wrong, kBrief ? 20 : 50);
}

}  // namespace
}  // namespace tutti::internal
