// Who copies the messages of a plan.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <utility>
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

// Where one of two ranks only sends and the other only receives, both copy what is long, if both can.
TEST(PlanCopier, SplitsLongMessagesOfARankThatOnlySends) {
  constexpr std::size_t kKiB = 1024;
  const Host splits{.split_from = 128 * kKiB, .reads_sent_from = kNever};
  const auto sender = [](Collective collective, Algorithm algorithm, std::uint64_t bytes, const Host& host,
                         int rank = 0, int ranks = 2) {
    return copiers(collective, algorithm, bytes, Layout::of(ranks), rank, 1, host).at(0);
  };
  const auto receiver = [](Collective collective, Algorithm algorithm, std::uint64_t bytes, const Host& host,
                           int rank = 1, int ranks = 2) {
    const Call call{.collective = collective, .dtype = DType::uint8, .op = Op::sum, .count = bytes};
    const auto plan = make_plan(call, *find_algorithm(collective, algorithm), rank, Layout::of(ranks), 1, host, {});
    for (const PlanStep& step : plan->steps)
      if (const auto* const receive = std::get_if<ReceiveStep>(&step)) return receive->hints.copier;
    ADD_FAILURE() << "it receives nothing";
    return Copier::peer;
  };
  using enum Collective;
  const std::pair<Collective, Algorithm> cases[] = {{broadcast, Algorithm::binomial_tree},
                                                    {transfer, Algorithm::direct},
                                                    {scatter, Algorithm::one_shot},
                                                    {gather, Algorithm::one_shot}};
  for (const auto& [collective, algorithm] : cases) {
    const int sends = collective == gather ? 1 : 0, receives = 1 - sends;
    EXPECT_EQ(sender(collective, algorithm, 128 * kKiB, splits, sends), Copier::split) << to_string(collective);
    EXPECT_NE(sender(collective, algorithm, 127 * kKiB, splits, sends), Copier::split) << to_string(collective);
    EXPECT_EQ(receiver(collective, algorithm, 128 * kKiB, splits, receives), Copier::split) << to_string(collective);
    EXPECT_EQ(receiver(collective, algorithm, 127 * kKiB, splits, receives), Copier::each) << to_string(collective);
    EXPECT_NE(sender(collective, algorithm, 4096 * kKiB, {}, sends), Copier::split) << "on other processors";
    EXPECT_EQ(receiver(collective, algorithm, 4096 * kKiB, {}, receives), Copier::each);
    const Host crowded{.crowded = true, .split_from = 128 * kKiB};
    EXPECT_NE(sender(collective, algorithm, 4096 * kKiB, crowded, sends), Copier::split);
    EXPECT_EQ(receiver(collective, algorithm, 4096 * kKiB, crowded, receives), Copier::each);
    if (collective == transfer) continue;
    EXPECT_NE(sender(collective, algorithm, 4096 * kKiB, splits, sends, 3), Copier::split) << "not measured";
    EXPECT_EQ(receiver(collective, algorithm, 4096 * kKiB, splits, receives, 3), Copier::each);
  }
  EXPECT_EQ(sender(all_gather, Algorithm::one_shot, 4096 * kKiB, splits), Copier::peer) << "both have enough to do";
  EXPECT_EQ(receiver(all_gather, Algorithm::one_shot, 4096 * kKiB, splits), Copier::each);
  EXPECT_EQ(sender(reduce, Algorithm::one_shot, 4096 * kKiB, splits, 1), Copier::each) << "the root combines";
}

// An older Xeon.
TEST(PlanCopier, LendsSoonerWhereCopiesAreDear) {
  const Host dear{.copies_are_dear = true};
  const auto copier = [&](Collective collective, Algorithm algorithm, std::uint64_t bytes, int rank = 0) {
    return copiers(collective, algorithm, bytes, Layout::of(2), rank, 1, dear).at(0);
  };
  using enum Collective;
  EXPECT_EQ(copier(all_gather, Algorithm::one_shot, 4 << 10), Copier::each);
  EXPECT_EQ(copier(all_gather, Algorithm::one_shot, 3 << 10), Copier::sender);
  EXPECT_EQ(copier(all_reduce, Algorithm::one_shot, 4 << 10), Copier::each);
  EXPECT_EQ(copier(all_reduce, Algorithm::one_shot, 3 << 10), Copier::sender);
  EXPECT_EQ(copier(broadcast, Algorithm::binomial_tree, 12 << 10), Copier::each);
  EXPECT_EQ(copier(broadcast, Algorithm::binomial_tree, 11 << 10), Copier::sender);
  EXPECT_EQ(copier(reduce, Algorithm::one_shot, 8 << 10, 1), Copier::each);
  const Host crowded{.crowded = true, .copies_are_dear = true};
  EXPECT_EQ(copiers(all_gather, Algorithm::one_shot, 31 << 10, Layout::of(2), 0, 1, crowded).at(0), Copier::sender);
}

}  // namespace
}  // namespace tutti::internal
