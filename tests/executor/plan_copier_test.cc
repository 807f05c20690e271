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
                            int rank, int chunks, const Host& host, bool packed = false) {
  const Call call{.collective = collective, .dtype = DType::uint8, .op = Op::sum, .count = bytes};
  const auto plan = make_plan(call, *find_algorithm(collective, algorithm), rank, layout, chunks, host,
                              {.part_bytes = packed ? bytes : 0, .packed = packed});
  std::vector<Copier> found;
  for (const PlanStep& step : plan->steps)
    if (const auto* const send = std::get_if<SendStep>(&step)) found.push_back(send->copier);
  return found;
}

TEST(PlanCopier, LeavesTheCopyingToPeersWhereThatIsQuicker) {
  const auto copier = [](Collective collective, Algorithm algorithm, std::uint64_t bytes, int rank = 0,
                         bool crowded = false) {
    const auto found = copiers(collective, algorithm, bytes, Layout::of(2), rank, 1, {.crowded = crowded});
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

TEST(PlanCopier, LeavesToPeersOnlyWhatTheProcessorReadsQuickly) {
  constexpr std::size_t kKiB = 1024;
  const Host host{.reads_moved_from = 64 * kKiB, .reads_sent_from = 128 * kKiB, .reads_combined_from = kNever};
  const auto copier = [&](Collective collective, Algorithm algorithm, std::uint64_t bytes) {
    return copiers(collective, algorithm, bytes, Layout::of(2), 0, 1, host).at(0);
  };
  using enum Collective;
  EXPECT_EQ(copier(all_to_all, Algorithm::one_shot, 63 * kKiB), Copier::each);
  EXPECT_EQ(copier(all_to_all, Algorithm::one_shot, 64 * kKiB), Copier::peer);
  EXPECT_EQ(copier(transfer, Algorithm::direct, 64 * kKiB), Copier::peer);
  EXPECT_EQ(copier(transfer, Algorithm::direct, 2048 * kKiB), Copier::each) << "the rule's own bound holds too";
  EXPECT_EQ(copier(broadcast, Algorithm::binomial_tree, 64 * kKiB), Copier::each);
  EXPECT_EQ(copier(broadcast, Algorithm::binomial_tree, 128 * kKiB), Copier::peer);
  EXPECT_EQ(copier(reduce_scatter, Algorithm::one_shot, 2048 * kKiB), Copier::each);
}

// The root of a long broadcast copies every other message, and the one reader those between.
TEST(PlanCopier, SharesTheCopiesOfALongBroadcastWithTheOnlyReader) {
  const Host shares{.both_copy_from = 1 << 20};
  const auto of = [](std::uint64_t bytes, const Host& host, int ranks = 2, int chunks = 4, bool packed = false) {
    return copiers(Collective::broadcast, Algorithm::chain, bytes, Layout::of(ranks), 0, chunks, host, packed);
  };
  using enum Copier;
  EXPECT_EQ(of(2 << 20, shares), (std::vector{each, sender, each, sender}));
  EXPECT_EQ(of(1 << 20, shares, 2, 3), (std::vector{each, sender, each})) << "not the peer alone";
  EXPECT_EQ(of(2 << 20, shares, 2, 1), (std::vector{each}));
  EXPECT_EQ(of((1 << 20) - 4, shares), (std::vector{peer, peer, peer, peer}));
  EXPECT_EQ(of(2 << 20, {}), (std::vector{each, each, each, each})) << "on other processors";
  EXPECT_EQ(of(2 << 20, shares, 3), (std::vector{each, each, each, each})) << "not measured";
  EXPECT_EQ(of(2 << 20, {.crowded = true, .both_copy_from = 1 << 20}), (std::vector{sender, sender, sender, sender}));
  for (const Copier copier : of(2 << 20, shares, 2, 4, true)) EXPECT_EQ(copier, each) << "of what was on a device";
}

}  // namespace
}  // namespace tutti::internal
