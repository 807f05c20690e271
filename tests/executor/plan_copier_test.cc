// Who copies the messages of a plan.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>
#include <variant>
#include <vector>

#include "copiers.h"
#include "executor/plan.h"

namespace tutti::internal {
namespace {

// Of the messages that a rank sends, in order.
std::vector<Copier> copiers(Collective collective, Algorithm algorithm, std::uint64_t bytes, const Layout& layout,
                            int rank, int chunks, const Host& host, bool packed = false) {
  const Call call{
      .collective = collective, .dtype = DType::uint8, .op = Op::sum, .algorithm = algorithm, .count = bytes};
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
    const auto found = copiers(collective, algorithm, bytes, Layout::of(2), rank, 1,
                               {.crowded = crowded, .cores = {.split_shared_from = kNever}});
    EXPECT_TRUE(std::ranges::all_of(found, [&](Copier each) { return each == found[0]; }));
    return found.at(0);
  };
  using enum Collective;
  EXPECT_EQ(copier(transfer, Algorithm::direct, 4 << 10), kSender);
  EXPECT_EQ(copier(transfer, Algorithm::direct, 8 << 10), kEach);
  EXPECT_EQ(copier(transfer, Algorithm::direct, 16 << 10), kPeer);
  EXPECT_EQ(copier(transfer, Algorithm::direct, 1 << 20), kPeer);
  EXPECT_EQ(copier(transfer, Algorithm::direct, 2 << 20), kEach) << "the sender is free to do half of it";
  EXPECT_EQ(copier(all_to_all, Algorithm::one_shot, 8 << 10), kSender);
  EXPECT_EQ(copier(all_to_all, Algorithm::one_shot, 12 << 10), kEach);
  EXPECT_EQ(copier(all_to_all, Algorithm::one_shot, 64 << 20), kPeer) << "all ranks have as much to do";
  EXPECT_EQ(copier(gather, Algorithm::one_shot, 256 << 10, 1), kPeer);
  EXPECT_EQ(copier(gather, Algorithm::one_shot, 2 << 20, 1), kEach);
  EXPECT_EQ(copier(scatter, Algorithm::one_shot, 15 << 10), kSender);
  EXPECT_EQ(copier(scatter, Algorithm::one_shot, 16 << 10), kPeer);
  EXPECT_EQ(copier(scatter, Algorithm::one_shot, 2 << 20), kPeer) << "the root copies its own row meanwhile";
  EXPECT_EQ(copier(reduce, Algorithm::one_shot, 256 << 10, 1), kEach) << "the root has to combine";
  EXPECT_EQ(copier(broadcast, Algorithm::binomial_tree, 8 << 10), kSender) << "it would only wait for the peer";
  EXPECT_EQ(copier(broadcast, Algorithm::binomial_tree, 48 << 10), kEach);
  EXPECT_EQ(copier(reduce, Algorithm::one_shot, 32 << 10, 1), kSender);
  EXPECT_EQ(copier(all_reduce, Algorithm::one_shot, 4 << 10), kSender) << "it may overwrite what it sends";
  EXPECT_EQ(copier(all_reduce, Algorithm::two_shot, 4 << 10), kEach);
  EXPECT_EQ(copier(all_to_all, Algorithm::one_shot, 16 << 10, 0, true), kSender)
      << "to be waited for costs a turn of the core";
  EXPECT_EQ(copier(all_to_all, Algorithm::one_shot, 32 << 10, 0, true), kEach);
}

// Broadcasts by ranks that share processors.
TEST(PlanCopier, LendsLongCallsToNearPeersOnly) {
  constexpr int kChunks = 256;
  const auto copier = [](Collective collective, Algorithm algorithm, std::uint64_t bytes, int rank = 0,
                         bool crowded = true) {
    const auto found = copiers(collective, algorithm, bytes, Layout::of(4), rank, kChunks, {.crowded = crowded});
    EXPECT_TRUE(std::ranges::all_of(found, [&](Copier each) { return each == found[0]; }));
    return found.at(0);
  };
  using enum Algorithm;
  for (const Algorithm algorithm : {chain, hierarchical, binomial_tree})
    for (const int rank : {0, 1}) {
      if (algorithm == binomial_tree && rank == 1) continue;  // a leaf
      SCOPED_TRACE(to_string(algorithm));
      EXPECT_EQ(copier(Collective::broadcast, algorithm, 4 << 20, rank), kSender);
      EXPECT_EQ(copier(Collective::broadcast, algorithm, (4 << 20) + 1, rank), kFarSender);
      EXPECT_NE(copier(Collective::broadcast, algorithm, 64 << 20, rank, false), kFarSender) << "with a core each";
    }
  EXPECT_EQ(copier(Collective::all_gather, one_shot, 5 << 20), kSender) << "another collective, in short pieces";
  const Call of_floats{.collective = Collective::broadcast, .dtype = DType::float32, .count = (1 << 20) + 1};
  const auto plan = make_plan(of_floats, *find_algorithm(Collective::broadcast, chain), 0, Layout::of(4), kChunks,
                              {.crowded = true}, {});
  const auto sends = [](const PlanStep& step) { return std::holds_alternative<SendStep>(step); };
  const auto first_send = std::ranges::find_if(plan->steps, sends);
  ASSERT_NE(first_send, plan->steps.end());
  EXPECT_EQ(std::get<SendStep>(*first_send).copier, kFarSender) << "bytes, not elements";
}

TEST(PlanCopier, LeavesToPeersOnlyWhatTheProcessorReadsQuickly) {
  constexpr std::size_t kKiB = 1024;
  const Host host{.cores = {.reads_moved_from = 64 * kKiB,
                            .reads_sent_from = 128 * kKiB,
                            .reads_combined_from = kNever,
                            .split_shared_from = kNever}};
  const auto copier = [&](Collective collective, Algorithm algorithm, std::uint64_t bytes) {
    return copiers(collective, algorithm, bytes, Layout::of(2), 0, 1, host).at(0);
  };
  using enum Collective;
  EXPECT_EQ(copier(all_to_all, Algorithm::one_shot, 63 * kKiB), kEach);
  EXPECT_EQ(copier(all_to_all, Algorithm::one_shot, 64 * kKiB), kPeer);
  EXPECT_EQ(copier(transfer, Algorithm::direct, 64 * kKiB), kPeer);
  EXPECT_EQ(copier(transfer, Algorithm::direct, 2048 * kKiB), kEach) << "the rule's own bound holds too";
  EXPECT_EQ(copier(broadcast, Algorithm::binomial_tree, 64 * kKiB), kEach);
  EXPECT_EQ(copier(broadcast, Algorithm::binomial_tree, 128 * kKiB), kPeer);
  EXPECT_EQ(copier(reduce_scatter, Algorithm::one_shot, 2048 * kKiB), kEach);
}

// Where one of two ranks only sends and the other only receives, both copy what is long.
TEST(PlanCopier, SplitsLongMessagesOfARankThatOnlySends) {
  constexpr std::size_t kKiB = 1024, kLong = 4096 * kKiB;
  const Host splits{.cores = {.reads_sent_from = kNever, .split_shared_from = 32 * kKiB, .split_from = 128 * kKiB}};
  const Host other{.cores = {.split_shared_from = 32 * kKiB}};
  using enum Collective;
  // Of memory that both map; of other memory, for the sender; and the receiver.
  using Parts = std::array<bool, 3>;
  const auto split = [&](Collective collective, std::uint64_t bytes, const Host& host, int ranks = 2) {
    const Algorithm algorithm = collective == broadcast  ? Algorithm::binomial_tree
                                : collective == transfer ? Algorithm::direct
                                                         : Algorithm::one_shot;
    const int sends = collective == gather || collective == reduce ? 1 : 0;
    const Call call{.collective = collective, .dtype = DType::uint8, .op = Op::sum, .count = bytes};
    const AlgorithmEntry& entry = *find_algorithm(collective, algorithm);
    const Copier copier = copiers(collective, algorithm, bytes, Layout::of(ranks), sends, 1, host).at(0);
    const auto plan = make_plan(call, entry, 1 - sends, Layout::of(ranks), 1, host, {});
    bool may_split = false;
    for (const PlanStep& step : plan->steps)
      if (const auto* const receive = std::get_if<ReceiveStep>(&step)) may_split = receive->hints.may_split;
    return Parts{copier.shared == SharedCopier::split, copier.ordinary == OrdinaryCopier::split, may_split};
  };
  constexpr Parts kNone{}, kShared{true, false, false}, kOther{false, true, true}, kAll{true, true, true};
  for (const Collective collective : {broadcast, transfer, gather}) {
    EXPECT_EQ(split(collective, 128 * kKiB, splits), kAll) << to_string(collective);
    EXPECT_EQ(split(collective, 128 * kKiB - 1, splits), kShared) << to_string(collective);
    EXPECT_EQ(split(collective, 32 * kKiB, splits), kShared) << to_string(collective);
    EXPECT_EQ(split(collective, 32 * kKiB - 1, splits), kNone) << to_string(collective);
    EXPECT_EQ(split(collective, kLong, other), kShared) << "on other processors";
    EXPECT_EQ(split(collective, kLong, {.crowded = true, .cores = {.split_shared_from = 0, .split_from = 0}}), kNone);
    if (collective != transfer) {
      EXPECT_EQ(split(collective, kLong, splits, 3), kNone) << "not measured";
    }
  }
  EXPECT_EQ(split(scatter, kLong, splits), kOther) << "its root copies a row of its own, too";
  EXPECT_EQ(split(scatter, kLong, other), kNone);
  EXPECT_EQ(split(all_gather, kLong, splits), kNone) << "both have enough to do";
  EXPECT_EQ(split(reduce, kLong, splits), kNone) << "the root combines";
}

// Who copies other memory does not depend on it.
TEST(PlanCopier, LeavesOrdinaryMemoryToThePeerWhereItSplitsOther) {
  const Host host{.cores = {.split_shared_from = 32 << 10}};
  const auto copier = [&](std::uint64_t bytes) {
    return copiers(Collective::broadcast, Algorithm::binomial_tree, bytes, Layout::of(2), 0, 1, host).at(0);
  };
  EXPECT_EQ(copier(32 << 10), Copier{.shared = SharedCopier::split});
  EXPECT_EQ(copier(64 << 10), (Copier{SharedCopier::split, OrdinaryCopier::peer}));
  EXPECT_EQ(copier(2 << 20), Copier{.shared = SharedCopier::split});
}

// An older Xeon.
TEST(PlanCopier, LendsSoonerWhereCopiesAreDear) {
  const Host dear{.cores = {.split_shared_from = kNever, .copies_are_dear = true}};
  const auto copier = [&](Collective collective, Algorithm algorithm, std::uint64_t bytes, int rank = 0) {
    return copiers(collective, algorithm, bytes, Layout::of(2), rank, 1, dear).at(0);
  };
  using enum Collective;
  EXPECT_EQ(copier(all_gather, Algorithm::one_shot, 4 << 10), kEach);
  EXPECT_EQ(copier(all_gather, Algorithm::one_shot, 3 << 10), kSender);
  EXPECT_EQ(copier(all_reduce, Algorithm::one_shot, 4 << 10), kEach);
  EXPECT_EQ(copier(all_reduce, Algorithm::one_shot, 3 << 10), kSender);
  EXPECT_EQ(copier(broadcast, Algorithm::binomial_tree, 12 << 10), kEach);
  EXPECT_EQ(copier(broadcast, Algorithm::binomial_tree, 11 << 10), kSender);
  EXPECT_EQ(copier(reduce, Algorithm::one_shot, 8 << 10, 1), kEach);
  const Host crowded{.crowded = true, .cores = {.copies_are_dear = true}};
  EXPECT_EQ(copiers(all_gather, Algorithm::one_shot, 31 << 10, Layout::of(2), 0, 1, crowded).at(0), kSender);
}

}  // namespace
}  // namespace tutti::internal
