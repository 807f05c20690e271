#include "schedule/cost.h"

#include <gtest/gtest.h>

#include <array>

#include "schedule/examples.h"
#include "schedule/text.h"
#include "tutti/error.h"

namespace tutti {
namespace {

constexpr CostModel kModel{.alpha_us = 1,
                           .beta_us_per_byte = 0.01,
                           .gamma_us_per_byte = 0.001,
                           .remote_alpha_us = 10,
                           .remote_beta_us_per_byte = 0.1};

TEST(Cost, OfTwoShotOnTwoRanksIsItsFormula) {
  const Example example = two_shot(Layout::of(2), 1);
  const Cost cost = price(example.schedules, example.layout, 1000, 4, 4, kModel);
  EXPECT_DOUBLE_EQ(cost.us, 2 * 1 + 4000 * 0.01 + 4000 * 0.001);  // 2 alpha + M beta + M gamma
  EXPECT_EQ(cost.max_bytes_sent, 4000u);
  EXPECT_EQ(cost.max_bytes_received, 4000u);
  EXPECT_EQ(cost.max_messages_sent, 2);
  EXPECT_EQ(cost.scratch_bytes, 0u);
}

TEST(Cost, OfARingIsItsFormula) {
  for (int ranks : {2, 3, 4, 8}) {
    const Example example = ring(ranks);
    const double slice = 4096.0;
    const Cost cost = price(example.schedules, example.layout, 1024 * ranks, 4, 4, kModel);
    EXPECT_NEAR(cost.us, 2 * (ranks - 1) * (1 + slice * 0.01) + (ranks - 1) * 2 * slice * 0.001, 1e-6)
        << ranks << " ranks";
    EXPECT_EQ(cost.max_bytes_sent, std::size_t(2 * (ranks - 1) * slice));
    EXPECT_EQ(cost.max_messages_sent, 2 * (ranks - 1));
  }
}

TEST(Cost, PartialResultsTravelInTheAccumulationType) {
  const Example example = recursive_doubling(4);
  const Cost cost = price(example.schedules, example.layout, 1000, 2, 4, kModel);
  EXPECT_EQ(cost.max_bytes_sent, 2000u + 4000u);
  EXPECT_EQ(cost.scratch_bytes, 2 * 4000u);
}

TEST(Cost, MessagesBetweenHostsCostMore) {
  Example example = two_shot(Layout::of(2), 1);
  example.layout.host = {0, 1};
  EXPECT_DOUBLE_EQ(price(example.schedules, example.layout, 1000, 4, 4, kModel).us, 2 * 10 + 4000 * 0.1 + 4000 * 0.001);
}

TEST(Cost, CountsTheBytesBetweenHostsOfTheBusiestRankAndOfAll) {
  Example example = two_shot(Layout::of(3), 1);
  example.layout.host = {0, 0, 1};
  const Cost cost = price(example.schedules, example.layout, 3000, 4, 4, kModel);
  EXPECT_EQ(cost.max_bytes_between_hosts,
            4 * 4000u);  // rank 2 sends a third of the message to each of two ranks, twice
  EXPECT_EQ(cost.bytes_between_hosts, 8 * 4000u);
  example.layout.host = {0, 0, 0};
  EXPECT_EQ(price(example.schedules, example.layout, 3000, 4, 4, kModel).bytes_between_hosts, 0u);
}

TEST(Cost, PipeliningAChainPaysOffForLongMessagesOnly) {
  const auto chain = [](int chunks, std::size_t count) {
    const Example example = chain_broadcast(8, 0, chunks);
    return price(example.schedules, example.layout, count, 4, 4, kModel).us;
  };
  EXPECT_LT(chain(16, 1 << 20), chain(1, 1 << 20) / 2);
  EXPECT_LT(chain(1, 1), chain(16, 1));
}

TEST(Cost, OneRankSendsOneMessageAtATime) {
  const Example example = direct_reduce_scatter(4);
  const Cost cost = price(example.schedules, example.layout, 4000, 4, 4, kModel);
  EXPECT_DOUBLE_EQ(cost.us, 3 * (1 + 4000 * 0.01) + 4 * 4000 * 0.001);
}

TEST(Cost, ASchedulesThatDoesNotEndHasNoPrice) {
  Example example = two_shot(Layout::of(2), 1);
  example.schedules[0].steps.clear();
  EXPECT_THROW(price(example.schedules, example.layout, 10, 4, 4, kModel), Error);
}

TEST(Cost, OfNothingIsLatencyAlone) {
  const Example example = recursive_doubling(8);
  EXPECT_DOUBLE_EQ(price(example.schedules, example.layout, 0, 4, 4, kModel).us, 3);
}

}  // namespace
}  // namespace tutti
