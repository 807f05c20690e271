// The verifier against its oracle: whatever the interpreter can drive to a wrong result, a race or a deadlock under
// some interleaving, the verifier must have rejected. The other way round it may be stricter, but not by much.
#include <gtest/gtest.h>

#include <iostream>
#include <map>

#include "schedule/examples.h"
#include "schedule/interpret.h"
#include "schedule/mutator.h"

namespace tutti::internal {
namespace {

struct Tally {
  int accepted = 0, broken = 0, unbroken = 0;  // the latter two: rejected, and broken by the interpreter or not
};

constexpr int kRounds = 30;  // about 2000 mutants; 500 is a longer hunt, and found nothing either

std::string error_text_under_some_seed(const Example& example, int seeds) {
  const std::size_t parts = example.schedules[0].slices * example.schedules[0].chunks;
  for (int seed = 0; seed < seeds; ++seed) {
    const std::size_t count = parts * 3 + seed % 3;
    std::string error_text =
        interpret(example.schedules, example.layout, example.goal, count, seed % 2 == 0, seed).error_text;
    if (!error_text.empty()) return error_text;
  }
  return {};
}

TEST(Mutation, WhatTheInterpreterBreaksTheVerifierHasRejected) {
  std::map<std::string, Tally> tallies;
  std::uint64_t seed = 0;
  for (int round = 0; round < kRounds; ++round)
    for (int ranks = 1; ranks <= 9; ++ranks)
      for (const Example& example : examples(ranks)) {
        Example mutant = example;
        Mutator mutator(++seed);
        std::string change = mutator.mutate(mutant.schedules);
        if (round % 4 == 0 && !mutator.mutate(mutant.schedules).empty()) change = "two changes";
        if (mutant.schedules == example.schedules) continue;
        const Proof proof = verify(mutant.schedules, mutant.layout, mutant.goal);
        const std::string error_text = error_text_under_some_seed(mutant, 20);
        EXPECT_TRUE(error_text.empty() || !proof.holds)
            << example.name << " on " << ranks << " ranks, mutant " << seed << " (" << change << "): " << error_text;
        Tally& tally = tallies[change];
        ++(proof.holds ? tally.accepted : error_text.empty() ? tally.unbroken : tally.broken);
      }

  Tally total;
  for (const auto& [change, tally] : tallies) {
    std::cout << change << ": accepted " << tally.accepted << ", rejected " << tally.broken + tally.unbroken
              << ", of which " << tally.unbroken << " the interpreter could not break\n";
    total.accepted += tally.accepted;
    total.broken += tally.broken;
    total.unbroken += tally.unbroken;
  }
  EXPECT_GT(total.broken, 40 * kRounds);
  EXPECT_GT(total.accepted, 5 * kRounds) << "harmless changes must be accepted";
  EXPECT_LT(total.unbroken, total.broken / 8) << "the verifier is stricter than it need be";
}

}  // namespace
}  // namespace tutti::internal
