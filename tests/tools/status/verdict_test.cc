#include "status/verdict.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "status/table.h"

namespace tutti::internal::tools {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr std::int64_t kNow = 1'000'000'000;

CommunicatorReport world(std::int64_t number, bool is_over) {
  CommunicatorReport communicator{.id = "1", .name = "world", .ranks = {0, 1, 2, 3}};
  communicator.last = {number, "all_reduce (float32 x 2, sum)", 8, kNow - 5'000'000, std::nullopt};
  if (is_over) communicator.last->end_us = kNow - 4'000'000;
  return communicator;
}
RankReport idle(int rank, std::int64_t number) {
  return {
      .job = "7", .rank = rank, .size = 4, .pid = 100 + rank, .time_us = kNow, .communicators = {world(number, true)}};
}
RankReport waiting(int rank, std::int64_t number, int peer, std::int64_t for_us = 3'000'000) {
  RankReport report = idle(rank, number);
  report.communicators[0] = world(number, false);
  report.communicators[0].waits_for = {peer, 2, false, kNow - for_us};
  return report;
}

TEST(StatusVerdict, NamesTheRankThatHasNotEntered) {
  const std::string verdict = verdict_on({waiting(0, 5, 1), waiting(1, 5, 2), idle(2, 4), waiting(3, 5, 2)});
  EXPECT_THAT(verdict,
              HasSubstr("Rank 2 has not entered all_reduce #5 (float32 x 2, sum): it completed all_reduce #4"));
  EXPECT_THAT(verdict, HasSubstr("4.0 s ago"));
  EXPECT_THAT(verdict, HasSubstr("Waiting for it, in world: ranks 0, 1, 3."));
  EXPECT_THAT(verdict, Not(HasSubstr("Rank 1")));
}

TEST(StatusVerdict, NamesACycleOnce) {
  const std::string verdict = verdict_on({waiting(0, 5, 1), waiting(1, 5, 2), waiting(2, 5, 0), waiting(3, 5, 0)});
  EXPECT_THAT(verdict, HasSubstr("A cycle: rank 0 waits for rank 1"));
  EXPECT_THAT(verdict, HasSubstr("; rank 1 waits for rank 2"));
  EXPECT_THAT(verdict, HasSubstr("; rank 2 waits for rank 0"));
  EXPECT_EQ(verdict.find("A cycle"), verdict.rfind("A cycle"));
}

TEST(StatusVerdict, BlamesNobodyForAMoment) {
  EXPECT_THAT(verdict_on({waiting(0, 5, 1, 50'000), idle(1, 4)}), HasSubstr("No rank has waited"));
  EXPECT_THAT(verdict_on({idle(0, 4), idle(1, 4)}), HasSubstr("No rank has waited"));
}

// As the table has them, whoever came last.
TEST(StatusVerdict, NamesWhoHasWaitedShortlyForOneThatIsBlamed) {
  EXPECT_THAT(verdict_on({waiting(0, 5, 1, 50'000), idle(1, 4), waiting(2, 5, 1)}),
              HasSubstr("Waiting for it, in world: ranks 0, 2."));
  EXPECT_THAT(verdict_on({waiting(0, 5, 3, 50'000), idle(1, 4), waiting(2, 5, 1), idle(3, 4)}),
              HasSubstr("Waiting for it, in world: rank 2."));
}

TEST(StatusVerdict, NamesARankThatDoesNotAnswerOrIsNotThere) {
  const RankReport stopped{.job = "7", .rank = 1, .pid = 5, .why_none = "its process is stopped"};
  EXPECT_THAT(verdict_on({waiting(0, 5, 1), stopped}), HasSubstr("Rank 1 does not answer: its process is stopped"));
  EXPECT_THAT(verdict_on({waiting(0, 5, 3)}), HasSubstr("Rank 3 says nothing"));
}

TEST(StatusVerdict, NamesARankThatIsInTheCallAndWaitsForNobody) {
  RankReport drives_nothing = waiting(1, 5, 0);
  drives_nothing.communicators[0].waits_for.reset();
  EXPECT_THAT(verdict_on({waiting(0, 5, 1), drives_nothing}), HasSubstr("Rank 1 is in all_reduce #5"));
}

TEST(StatusVerdict, SaysThatARankHasWaitedForAMoment) {
  EXPECT_THAT(
      verdict_on({waiting(0, 5, 1), waiting(1, 5, 2, 50'000), idle(2, 5)}),
      HasSubstr("Rank 1 is in all_reduce #5 (float32 x 2, sum) too and has waited for rank 2 for less than 0.1 s."));
  EXPECT_THAT(
      verdict_on({waiting(0, 5, 1), waiting(1, 4, 2, 10'000), idle(2, 5)}),
      HasSubstr("it is in all_reduce #4 (float32 x 2, sum) and has waited for rank 2 for less than 0.1 s there."));
}

TEST(StatusVerdict, FollowsARankIntoAnotherCommunicator) {
  RankReport one = waiting(0, 5, 1), other = idle(1, 4);
  CommunicatorReport pair{.id = "9", .name = "ranks 0,1", .ranks = {0, 1}};
  pair.last = {3, "broadcast (int32 x 1, root 0)", 4, kNow - 5'000'000, std::nullopt};
  pair.waits_for = {0, 1, false, kNow - 5'000'000};
  other.communicators.push_back(pair);
  EXPECT_THAT(verdict_on({one, other}),
              HasSubstr("rank 1 waits for rank 0 in broadcast #3 (int32 x 1, root 0) of ranks 0,1"));
}

TEST(StatusTable, HasNoRowForALaneThatIsIdle) {
  RankReport report = idle(0, 4);
  CommunicatorReport lane = world(1, true);
  lane.id = "77";
  lane.name = "0 to 1";
  report.communicators.push_back(lane);
  EXPECT_THAT(table_of({report}), Not(HasSubstr("0 to 1")));
  report.communicators.back().last->end_us.reset();
  EXPECT_THAT(table_of({report}), HasSubstr("0 to 1"));
}

TEST(StatusReport, RefusesWhatIsNone) {
  EXPECT_THROW(parse_report("{}"), std::runtime_error);
  EXPECT_THROW(parse_report("not JSON"), std::runtime_error);
  EXPECT_THROW(parse_report(R"({"format": 2})"), std::runtime_error);
}

}  // namespace
}  // namespace tutti::internal::tools
