#include "executor/plan.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tutti/error.h"

namespace tutti::internal {
namespace {

std::unique_ptr<Plan> plan_of(Collective collective, Algorithm algorithm, std::uint64_t count, int rank,
                              const Layout& layout, DType dtype = DType::float32) {
  const Call call{.collective = collective, .dtype = dtype, .op = Op::sum, .count = count};
  return make_plan(call, *find_algorithm(collective, algorithm), rank, layout);
}

template <class Kind>
std::vector<Kind> steps_of(const Plan& plan) {
  std::vector<Kind> found;
  for (const PlanStep& step : plan.steps)
    if (const auto* const kind = std::get_if<Kind>(&step)) found.push_back(*kind);
  return found;
}

TEST(MakePlan, TwoShotStoresItsResultForAllPeersInOnePass) {
  for (const int ranks : {2, 3, 8}) {
    const auto plan = plan_of(Collective::all_reduce, Algorithm::two_shot, 1000, 1, Layout::of(ranks));
    const auto reduces = steps_of<ReduceStep>(*plan);
    ASSERT_EQ(reduces.size(), 1u);
    EXPECT_EQ(reduces[0].pushes, static_cast<std::uint32_t>(ranks - 1));
    EXPECT_EQ(plan->most_pushes, reduces[0].pushes);
    EXPECT_EQ(plan->most_sources, static_cast<std::size_t>(ranks));
    EXPECT_EQ(std::ranges::count(steps_of<SendStep>(*plan), true, &SendStep::fused), ranks - 1);
    EXPECT_EQ(plan->scratch_bytes, 0u);
    ASSERT_TRUE(std::holds_alternative<ReceiveStep>(plan->steps.front()));
    EXPECT_EQ(std::get<ReceiveStep>(plan->steps.front()).message, 1u) << "the peer's input comes first, and is viewed";
  }
}

TEST(MakePlan, ACopyStoresWhatIsSentOfItsSourceToAllPeers) {
  const auto plan = plan_of(Collective::all_gather, Algorithm::one_shot, 1000, 1, Layout::of(3));
  const auto reduces = steps_of<ReduceStep>(*plan);
  ASSERT_EQ(reduces.size(), 1u);
  EXPECT_EQ(reduces[0].pushes, 2u);
  EXPECT_TRUE(reduces[0].sends_source);
  for (const SendStep& send : steps_of<SendStep>(*plan)) EXPECT_EQ(send.from.space, Space::input);
}

// Of a message that the cache does not keep.
TEST(MakePlan, GoesPastTheCacheWithWhatIsNotReadAgain) {
  const auto past_cache = []<class Kind>(Collective collective, Algorithm algorithm, int rank, std::size_t cache_bytes,
                                         Kind) {
    const Call call{.collective = collective, .dtype = DType::float32, .op = Op::sum, .count = 1000};
    const auto plan =
        make_plan(call, *find_algorithm(collective, algorithm), rank, Layout::of(3), 1, {.cache_bytes = cache_bytes});
    const auto steps = steps_of<Kind>(*plan);
    const auto goes_past = [](const Kind& step) {
      if constexpr (std::is_same_v<Kind, ReceiveStep>)
        return step.hints.past_cache;
      else
        return step.past_cache;
    };
    return std::ranges::count_if(steps, goes_past) * 10 + static_cast<std::ptrdiff_t>(steps.size());
  };
  constexpr std::size_t kLarge = 1 << 20, kSmall = 4096;
  const ReceiveStep receive;
  const ReduceStep reduce;
  EXPECT_EQ(past_cache(Collective::broadcast, Algorithm::chain, 2, kLarge, receive), 1);
  EXPECT_EQ(past_cache(Collective::broadcast, Algorithm::chain, 2, kSmall, receive), 11);
  EXPECT_EQ(past_cache(Collective::broadcast, Algorithm::chain, 1, kSmall, receive), 1) << "it is sent on";
  EXPECT_EQ(past_cache(Collective::all_gather, Algorithm::one_shot, 1, kSmall, receive), 22);
  EXPECT_EQ(past_cache(Collective::all_gather, Algorithm::one_shot, 1, kSmall, reduce), 11) << "the source is sent";
  EXPECT_EQ(past_cache(Collective::all_gather, Algorithm::ring, 1, kSmall, receive), 12) << "one is sent on";
  EXPECT_EQ(past_cache(Collective::all_reduce, Algorithm::two_shot, 1, kSmall, reduce), 11);
  // Three fourths of the cache are for all ranks' inputs and outputs: 3 * 16000 bytes; 3 * 4000 + 12000.
  EXPECT_EQ(past_cache(Collective::all_gather, Algorithm::one_shot, 1, 64 << 10, receive), 2);
  EXPECT_EQ(past_cache(Collective::all_gather, Algorithm::one_shot, 1, 60 << 10, receive), 22);
  EXPECT_EQ(past_cache(Collective::gather, Algorithm::one_shot, 0, 32 << 10, receive), 2);
  EXPECT_EQ(past_cache(Collective::gather, Algorithm::one_shot, 0, 31 << 10, receive), 22);
}

// Fetches of what a rank writes to next pay in short calls, and in long ones of an all_reduce.
TEST(MakePlan, FetchesToWriteWhereItPays) {
  const auto fetches = [](Collective collective, Algorithm algorithm, std::size_t bytes, const Host& host) {
    const Call call{.collective = collective, .dtype = DType::float32, .op = Op::sum, .count = bytes / sizeof(float)};
    const auto plan = make_plan(call, *find_algorithm(collective, algorithm), 0, Layout::of(2), 1, host);
    const auto receives = steps_of<ReceiveStep>(*plan);
    const auto reduces = steps_of<ReduceStep>(*plan);
    const auto fetched = std::ranges::count_if(receives, [](const auto& step) { return step.hints.fetches_to_write; }) +
                         std::ranges::count(reduces, true, &ReduceStep::fetches_to_write);
    EXPECT_TRUE(fetched == 0 || static_cast<std::size_t>(fetched) == receives.size() + reduces.size());
    return fetched > 0;
  };
  constexpr std::size_t kMost = 64 << 10;
  const Host host{.cores = {.fetches_to_write_up_to = kMost}},
      crowded{.crowded = true, .cores = {.fetches_to_write_up_to = kMost}};
  EXPECT_TRUE(fetches(Collective::all_reduce, Algorithm::two_shot, kMost, host));
  EXPECT_FALSE(fetches(Collective::all_reduce, Algorithm::two_shot, kMost + 4, host));
  EXPECT_FALSE(fetches(Collective::all_reduce, Algorithm::two_shot, 2 * kMost, host));
  EXPECT_TRUE(fetches(Collective::all_reduce, Algorithm::two_shot, 2 * kMost + 4, host));
  EXPECT_TRUE(fetches(Collective::all_reduce, Algorithm::one_shot, 4096, host));
  EXPECT_FALSE(fetches(Collective::all_reduce, Algorithm::one_shot, 4092, host)) << "too short";
  EXPECT_FALSE(fetches(Collective::all_reduce, Algorithm::two_shot, kMost, crowded));
  EXPECT_FALSE(fetches(Collective::all_reduce, Algorithm::two_shot, kMost, Host())) << "other processors";
  EXPECT_FALSE(fetches(Collective::all_reduce, Algorithm::two_shot, 4 * kMost, Host()));
  const Call call{.collective = Collective::all_reduce, .dtype = DType::float32, .op = Op::sum, .count = 1000};
  for (const auto& step : steps_of<ReduceStep>(
           *make_plan(call, *find_algorithm(Collective::all_reduce, Algorithm::two_shot), 0, Layout::of(3), 1, host)))
    EXPECT_FALSE(step.fetches_to_write) << "measured with two ranks";
  // Of the longer buffer: what each of the two ranks brings, or gets, is half of it.
  EXPECT_TRUE(fetches(Collective::all_gather, Algorithm::one_shot, kMost / 2, host));
  EXPECT_FALSE(fetches(Collective::all_gather, Algorithm::one_shot, kMost / 2 + 4, host));
  EXPECT_FALSE(fetches(Collective::all_gather, Algorithm::one_shot, 4 * kMost, host));
  EXPECT_TRUE(fetches(Collective::reduce_scatter, Algorithm::one_shot, kMost / 2, host));
  EXPECT_FALSE(fetches(Collective::reduce_scatter, Algorithm::one_shot, kMost / 2 + 4, host));
}

TEST(MakePlan, OneShotFinishesInOnePassOnceItsSendsAreBack) {
  for (const DType dtype : {DType::float32, DType::bfloat16}) {
    const auto plan = plan_of(Collective::all_reduce, Algorithm::one_shot, 10, 1, Layout::of(3), dtype);
    const auto reduces = steps_of<ReduceStep>(*plan);
    ASSERT_EQ(reduces.size(), 2u);
    ASSERT_NE(reduces[0].finisher, 0u);
    const auto& finisher = std::get<ReduceStep>(plan->steps[reduces[0].finisher]);
    EXPECT_EQ(finisher.reduction, reduces[1].reduction);
    EXPECT_EQ(finisher.to.space, Space::output);
    EXPECT_EQ(plan->reductions.size(), 3u) << "the sum, the sum finished, and the copy that finishes";
    EXPECT_EQ(reduces[1].finisher, 0u);
  }
}

TEST(MakePlan, WhatIsSentOnIsNotFinishedEarly) {
  const auto plan = plan_of(Collective::all_reduce, Algorithm::recursive_doubling, 10, 1, Layout::of(4));
  const auto reduces = steps_of<ReduceStep>(*plan);
  ASSERT_GE(reduces.size(), 2u);
  EXPECT_EQ(reduces[0].finisher, 0u);
}

TEST(MakePlan, SlicesCoverTheMessageOnceWhateverItsCount) {
  for (const std::uint64_t count : {0, 1, 2, 3, 15, 16, 17, 1000, 1001}) {
    std::size_t bytes = 0;
    for (int rank = 0; rank < 3; ++rank) {
      const auto plan = plan_of(Collective::all_reduce, Algorithm::two_shot, count, rank, Layout::of(3));
      const ReduceStep reduce = steps_of<ReduceStep>(*plan).front();
      EXPECT_EQ(reduce.to.offset, bytes) << "rank " << rank << ", " << count << " elements";
      bytes += reduce.count * reduce.element_bytes;
    }
    EXPECT_EQ(bytes, count * sizeof(float));
  }
}

TEST(MakePlan, TheOwnPartOfAHalfStartsWhereTheCallersBufferDoes) {
  const auto gather = plan_of(Collective::all_gather, Algorithm::one_shot, 10, 2, Layout::of(4));
  EXPECT_EQ(steps_of<SendStep>(*gather).front().from, (Place{Space::input, 0}));
  EXPECT_EQ(steps_of<ReduceStep>(*gather).front().to, (Place{Space::output, 2 * 10 * sizeof(float)}));
  const auto scatter = plan_of(Collective::reduce_scatter, Algorithm::one_shot, 10, 2, Layout::of(4));
  EXPECT_EQ(steps_of<ReduceStep>(*scatter).front().to, (Place{Space::output, 0}));
  EXPECT_EQ(steps_of<SendStep>(*scatter).front().from, (Place{Space::input, 3 * 10 * sizeof(float)})) << "to rank 3";
}

TEST(MakePlan, ASlotHoldsWhatTheRankHasOfTheMessage) {
  const auto packed = [](Collective collective, int rank) {
    const AlgorithmEntry& entry = *find_algorithm(collective, Algorithm::one_shot);
    const Call call{.collective = collective, .dtype = DType::float32, .count = 10};  // to and from rank 0
    return make_plan(call, entry, rank, Layout::of(4), 1, {}, {.packed = true});
  };
  constexpr std::size_t kRow = 10 * sizeof(float);
  const auto scattered = packed(Collective::reduce_scatter, 2);
  EXPECT_EQ(scattered->slot_bytes, 4 * kRow);
  EXPECT_EQ(scattered->output_slot, 2 * kRow) << "in place";
  const auto to_root = packed(Collective::gather, 2), root = packed(Collective::gather, 0);
  EXPECT_EQ(to_root->slot_bytes, kRow);
  EXPECT_EQ(to_root->input_slot, 0u) << "where its row is all there is";
  EXPECT_EQ(to_root->output_bytes, 0u);
  EXPECT_EQ(root->slot_bytes, 4 * kRow);
}

TEST(MakePlan, PartialResultsOfSmallTypesHaveRoomInTheAccumulationType) {
  const auto plan =
      plan_of(Collective::all_reduce, Algorithm::recursive_doubling, 1000, 0, Layout::of(4), DType::bfloat16);
  EXPECT_GE(plan->scratch_bytes, 1000 * sizeof(float));
  for (const SendStep& send : steps_of<SendStep>(*plan))
    EXPECT_EQ(send.bytes, 1000 * (send.from.space == Space::scratch ? 4u : 2u));
}

TEST(MakePlan, TwoMessagesOfOnePeerInOneStepAreRefusedInWords) {
  Layout layout = Layout::of(3);
  layout.first_leaf = {0, 1, 3, 4};  // ((01)(23)): rank 1's two leaves are no node
  try {
    plan_of(Collective::all_reduce, Algorithm::one_shot, 8, 0, layout);
    ADD_FAILURE() << "accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.code, ErrorCode::invalid_argument);
    EXPECT_NE(std::string(error.what()).find("two messages of rank 1"), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace tutti::internal
