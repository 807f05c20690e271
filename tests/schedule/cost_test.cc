#include "schedule/cost.h"

#include <gtest/gtest.h>

#include <array>

#include "schedule/examples.h"
#include "schedule/text.h"
#include "tutti/error.h"

namespace tutti::internal {
namespace {

const CostModel kModel{.local = LinkCost::line(1, 0.01, true),
                       .remote = LinkCost::line(10, 0.1, false),
                       .reduce = CostCurve::line(0, 0.001)};

TEST(CostCurve, IsStraightBetweenPointsAndGoesOnBeyondThem) {
  const CostCurve curve{{{64, 1}, {1024, 2}, {2048, 6}}};
  EXPECT_DOUBLE_EQ(curve.at(0), 1);
  EXPECT_DOUBLE_EQ(curve.at(64), 1);
  EXPECT_DOUBLE_EQ(curve.at(544), 1.5);
  EXPECT_DOUBLE_EQ(curve.at(1024), 2);
  EXPECT_DOUBLE_EQ(curve.at(4096), 14);
  EXPECT_DOUBLE_EQ(CostCurve{}.at(100), 0);
  EXPECT_DOUBLE_EQ((CostCurve{{{8, 3}}}.at(1e9)), 3);
  EXPECT_DOUBLE_EQ((CostCurve{{{0, 3}, {10, 1}}}.at(1e9)), 0) << "noise must not make a message earn time";
}

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

TEST(Cost, LinksMayDifferFromPairToPair) {
  Example example = two_shot(Layout::of(4), 1);
  example.layout.host = {0, 0, 1, 1};
  const auto with = [&](const LinkBetween& link) {
    return price(example.schedules, example.layout, 4000, 4, 4, kModel, link);
  };
  const Cost by_hosts = price(example.schedules, example.layout, 4000, 4, 4, kModel);
  const Cost same = with([&](int from, int to) -> const LinkCost& {
    return example.layout.host[from] == example.layout.host[to] ? kModel.local : kModel.remote;
  });
  EXPECT_EQ(same.us, by_hosts.us);
  const Cost all_local = with([](int, int) -> const LinkCost& { return kModel.local; });
  EXPECT_LT(all_local.us, by_hosts.us);
  EXPECT_EQ(all_local.bytes_between_hosts, by_hosts.bytes_between_hosts) << "what is between hosts says the layout";
  const Cost one_slow =
      with([](int from, int to) -> const LinkCost& { return from == 0 && to == 3 ? kModel.remote : kModel.local; });
  EXPECT_GT(one_slow.us, all_local.us);
  EXPECT_LT(one_slow.us, by_hosts.us);
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
  CostModel model = kModel;
  model.local.in_pieces = false;
  const Cost cost = price(example.schedules, example.layout, 4000, 4, 4, model);
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

TEST(Cost, SendingAndReceivingShareARanksCore) {
  CostModel model = kModel;
  model.local = {CostCurve::line(10, 0), CostCurve::line(8, 0), true};
  const Example example = dissemination(2);
  // Its own message until 8, the other's, which has come at 10, until 16.
  EXPECT_DOUBLE_EQ(price(example.schedules, example.layout, 0, 4, 4, model).us, 16);
}

TEST(Cost, WhatComesInPiecesIsCombinedAsItComes) {
  CostModel model = kModel;
  const std::size_t count = 1 << 20;
  const Example example = direct_reduce_scatter(2);
  const double as_it_comes = price(example.schedules, example.layout, count, 4, 4, model).us;
  model.local.in_pieces = false;
  EXPECT_LT(as_it_comes, price(example.schedules, example.layout, count, 4, 4, model).us - 1000);
}

TEST(Cost, RanksThatShareCoresWaitForThemAndForTheirTurns) {
  CostModel model = kModel;
  const Example example = recursive_doubling(8);
  const double alone = price(example.schedules, example.layout, 1000, 4, 4, model).us;
  model.local.switch_us = 100;
  model.cores = 8;
  EXPECT_DOUBLE_EQ(price(example.schedules, example.layout, 1000, 4, 4, model).us, alone);
  model.cores = 2;
  // Each of the eight waits three times, one after the other; the two cores turn for all of them.
  EXPECT_GE(price(example.schedules, example.layout, 1000, 4, 4, model).us, alone + 100 * 3);
  EXPECT_GE(price(example.schedules, example.layout, 1000, 4, 4, model).us, 100 * 8 * 3 / 2);
  model.local.switch_us = 0;
  model.cores = 1;
  EXPECT_GT(price(example.schedules, example.layout, 1000, 4, 4, model).us, alone * 3);
}

TEST(Cost, WhoSharesACoreMustGiveItAwayToHearOfTheOthersHoweverBusy) {
  // Messages come before a rank has sent its own: with a core each, nobody would have to wait.
  CostModel model = kModel;
  model.local = {CostCurve::line(0.1, 0), CostCurve::line(1, 0), true};
  const int ranks = 8;
  const Example example = direct_reduce_scatter(ranks);
  const double alone = price(example.schedules, example.layout, 1000, 4, 4, model).us;
  model.local.switch_us = 100;
  model.cores = 2;
  const double crowded = price(example.schedules, example.layout, 1000, 4, 4, model).us;
  const auto given_way = 100 * ranks / model.cores;
  EXPECT_GE(crowded, given_way) << "each of the eight gives way once at least";
  EXPECT_LE(crowded, alone + 3 * given_way + 8 * alone / model.cores) << "but not for each message";
}

TEST(Cost, ACoreComesBackWhenTheOthersThatShareItHaveLooked) {
  CostModel model = kModel;
  model.local.switch_us = 100;
  model.cores = 2;
  const int ranks = 8, hops = ranks - 1;
  const Example example = chain_broadcast(ranks, 0, 1);
  EXPECT_GE(price(example.schedules, example.layout, 1, 4, 4, model).us, hops * 100 * ranks / model.cores);
}

TEST(Cost, CountsWhatCrossesBetweenHosts) {
  Example example = two_shot(Layout::of(4), 1);
  example.layout.host = {0, 0, 1, 1};
  const Cost cost = price(example.schedules, example.layout, 4000, 4, 4, kModel);
  EXPECT_EQ(cost.messages_between_hosts, 2 * 8u);
  EXPECT_EQ(cost.bytes_between_hosts, 16 * 4000u);
  EXPECT_EQ(cost.max_bytes_between_hosts, 4 * 4000u);
  EXPECT_EQ(cost.max_bytes_reduced, 4 * 4000u);
}

}  // namespace
}  // namespace tutti::internal
