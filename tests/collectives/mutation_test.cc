// The catalogue's schedules damaged at random: whatever the interpreter can drive to a wrong result, a race or a
// deadlock, the verifier must have rejected. TUTTI_MUTATION_ROUNDS=100 hunts longer.
#include <gtest/gtest.h>

#include <cstdlib>

#include "brief.h"
#include "collectives/sweep.h"
#include "schedule/interpret.h"
#include "schedule/mutator.h"

namespace tutti::internal {
namespace {

struct Tally {
  int accepted = 0, rejected = 0, broken = 0;  // broken by the interpreter: a part of the rejected
};

int rounds_asked() {
  const char* asked = std::getenv("TUTTI_MUTATION_ROUNDS");
  return asked ? std::atoi(asked) : 6;
}

std::string error_text_under_some_seed(const AlgorithmEntry& entry, const std::vector<Schedule>& mutant,
                                       const Layout& layout, const Goal& goal) {
  for (int seed = 0; seed < 10; ++seed) {
    const std::size_t count = mutant[0].slices * mutant[0].chunks * 2 + seed % 3;
    const bool in_place = takes_both(entry) ? seed % 2 == 0 : goal.in_place;
    std::string error_text = interpret(mutant, layout, goal, count, in_place, seed).error_text;
    if (!error_text.empty()) return error_text;
  }
  return {};
}

void try_mutant(const AlgorithmEntry& entry, const Layout& layout, const Message& message, std::uint64_t seed,
                Tally& tally) {
  const Goal goal = goal_of(entry, message);
  const std::vector<Schedule> schedules = build_all(entry, layout, message);
  std::vector<Schedule> mutant = schedules;
  const std::string change = Mutator(seed).mutate(mutant);
  if (mutant == schedules) return;
  const Proof proof = verify(mutant, layout, goal);
  const std::string error_text = error_text_under_some_seed(entry, mutant, layout, goal);
  EXPECT_TRUE(error_text.empty() || !proof.holds)
      << name_of(entry) << " on " << layout.ranks() << " ranks with " << layout.leaves() << " leaves, mutant " << seed
      << " (" << change << "): " << error_text;
  ++(proof.holds ? tally.accepted : tally.rejected);
  if (!error_text.empty()) ++tally.broken;
}

TEST(Mutation, OfTheCatalogueIsRejectedWhereItDoesHarm) {
  Tally tally;
  std::mt19937 random(5);
  std::uint64_t seed = 0;
  for (int round = 0; round < rounds_asked(); ++round)
    for (const AlgorithmEntry& entry : catalogue()) {
      const bool host_aware = looks_at_hosts(entry);
      for (int n = 1; n <= (kBrief ? 6 : 8); ++n)
        for (int chunks : chunks_of(entry)) {
          const Message message{.root = static_cast<int>(seed % n),
                                .chunks = chunks,
                                .in_place = seed % 2 == 0,
                                .copies_once = seed % 4 < 2,
                                .copies_inputs = seed % 8 < 2};
          try_mutant(entry, Layout::of(n), message, ++seed, tally);
          if (traits_of(entry.collective).combines() && entry.several_leaves)
            try_mutant(entry, random_layout(n, 1 + static_cast<int>(random() % 15), random), message, ++seed, tally);
          if (!host_aware) continue;
          const auto placed = placements(n, random);
          try_mutant(entry, on_hosts(placed[seed % placed.size()]), message, seed + 1, tally);
          ++seed;
        }
    }
  RecordProperty("accepted", tally.accepted);
  RecordProperty("rejected", tally.rejected);
  RecordProperty("broken", tally.broken);
  EXPECT_GT(tally.broken, 80 * rounds_asked());
  EXPECT_GT(tally.accepted, 10 * rounds_asked()) << "harmless changes must be accepted";
  EXPECT_GT(tally.broken, tally.rejected * 3 / 4) << "the verifier is stricter than it need be";
}

}  // namespace
}  // namespace tutti::internal
