// Who copies the messages of a plan.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <variant>
#include <vector>

#include "executor/plan.h"

namespace tutti::internal {
namespace {

// Of the messages that a rank sends, in order.
std::vector<Copier> copiers(Collective collective, Algorithm algorithm, std::uint64_t bytes, const Layout& layout,
                            int rank = 0, int chunks = 1, bool crowded = false) {
  const Call call{.collective = collective, .dtype = DType::uint8, .op = Op::sum, .count = bytes};
  const auto plan = make_plan(call, *find_algorithm(collective, algorithm), rank, layout, chunks, {.crowded = crowded});
  std::vector<Copier> found;
  for (const PlanStep& step : plan->steps)
    if (const auto* const send = std::get_if<SendStep>(&step)) found.push_back(send->copier);
  return found;
}

TEST(PlanCopier, LeavesTheCopyingToPeersWhereThatIsQuicker) {
  const auto copier = [](Collective collective, Algorithm algorithm, std::uint64_t bytes, int rank = 0,
                         bool crowded = false) {
    const auto found = copiers(collective, algorithm, bytes, Layout::of(2), rank, 1, crowded);
    EXPECT_TRUE(std::ranges::all_of(found, [&](Copier each) { return each == found[0]; }));
    return found.at(0);
  };
  using enum Collective;
  EXPECT_EQ(copier(transfer, Algorithm::direct, 4 << 10), Copier::sender);
  EXPECT_EQ(copier(transfer, Algorithm::direct, 8 << 10), Copier::each);
  EXPECT_EQ(copier(transfer, Algorithm::direct, 16 << 10), Copier::peer);
  EXPECT_EQ(copier(transfer, Algorithm::direct, 1 << 20), Copier::peer);
  EXPECT_EQ(copier(transfer, Algorithm::direct, 2 << 20), Copier::each) << "the sender is free to do half of it";
  EXPECT_EQ(copier(all_to_all, Algorithm::one_shot, 8 << 10), Copier::sender);
  EXPECT_EQ(copier(all_to_all, Algorithm::one_shot, 12 << 10), Copier::each);
  EXPECT_EQ(copier(all_to_all, Algorithm::one_shot, 64 << 20), Copier::peer) << "all ranks have as much to do";
  EXPECT_EQ(copier(gather, Algorithm::one_shot, 256 << 10, 1), Copier::peer);
  EXPECT_EQ(copier(gather, Algorithm::one_shot, 2 << 20, 1), Copier::each);
  EXPECT_EQ(copier(scatter, Algorithm::one_shot, 2 << 20), Copier::peer) << "the root copies its own row meanwhile";
  EXPECT_EQ(copier(reduce, Algorithm::one_shot, 256 << 10, 1), Copier::each) << "the root has to combine";
  EXPECT_EQ(copier(broadcast, Algorithm::binomial_tree, 8 << 10), Copier::sender) << "it would only wait for the peer";
  EXPECT_EQ(copier(broadcast, Algorithm::binomial_tree, 48 << 10), Copier::each);
  EXPECT_EQ(copier(reduce, Algorithm::one_shot, 32 << 10, 1), Copier::sender);
  EXPECT_EQ(copier(all_reduce, Algorithm::one_shot, 4 << 10), Copier::sender) << "it may overwrite what it sends";
  EXPECT_EQ(copier(all_reduce, Algorithm::two_shot, 4 << 10), Copier::each);
  EXPECT_EQ(copier(all_to_all, Algorithm::one_shot, 16 << 10, 0, true), Copier::sender)
      << "to be waited for costs a turn of the core";
  EXPECT_EQ(copier(all_to_all, Algorithm::one_shot, 32 << 10, 0, true), Copier::each);
}

// The root of a long broadcast copies every other message, and the peer those between.
TEST(PlanCopier, SharesTheCopiesOfALongBroadcastWithTheOnlyReader) {
  const auto of = [](std::uint64_t bytes, int ranks, bool crowded = false) {
    return copiers(Collective::broadcast, Algorithm::chain, bytes, Layout::of(ranks), 0, 4, crowded);
  };
  using enum Copier;
  EXPECT_EQ(of(2 << 20, 2), (std::vector{each, sender, each, sender}));
  EXPECT_EQ(of(2 << 20, 3), (std::vector{each, sender, each, sender})) << "a chain has one reader";
  EXPECT_EQ(of(512 << 10, 2), (std::vector{peer, peer, peer, peer}));
  EXPECT_EQ(of(2 << 20, 2, true), (std::vector{sender, sender, sender, sender}));
}

}  // namespace
}  // namespace tutti::internal
