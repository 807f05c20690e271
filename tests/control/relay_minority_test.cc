// A hub whose ranks are no majority, and one whose members wait for another hub.
#include <gtest/gtest.h>

#include "control/one_hub.h"
#include "control/seat.h"

namespace tutti::internal {
namespace {

using namespace testing_relay;

const Notice* expulsion_in(const std::vector<Outgoing>& said, int rank) {
  for (const Outgoing& out : said)
    if (const auto* notice = std::get_if<Notice>(&out.message);
        notice && out.rank == rank && notice->kind == Kind::expelled)
      return notice;
  return nullptr;
}

// Ranks 1 to 3 are silent for all the time. Rank 4 answers.
std::vector<Outgoing> give_up_three_of_five(Relay& relay) {
  for (int s = 1; s <= 17; ++s) {
    relay.received(4, Ping{}, at(1000 * s));
    relay.tick(at(1000 * s));
  }
  return relay.take_outgoing();
}

TEST(RelayOfMinority, BindsNobodyByItsVerdict) {
  Hub few(5), many(3);
  const auto said = give_up_three_of_five(few.relay);
  for (const int rank : {1, 2, 3}) {
    EXPECT_TRUE(few.log.is_lost(rank));
    ASSERT_TRUE(expulsion_in(said, rank));
    EXPECT_EQ(expulsion_in(said, rank)->authority, Authority::minority);
  }
  EXPECT_EQ(few.log.behind(0)[0].code, ErrorCode::partitioned);
  few.relay.received(2, Ping{}, at(18'000));  // it hears so later, too
  const auto answer = few.relay.take_outgoing();
  EXPECT_EQ(expulsion_in(answer, 2)->authority, Authority::minority);

  for (int s = 1; s <= 17; ++s) {
    many.relay.received(1, Ping{}, at(1000 * s));
    many.relay.tick(at(1000 * s));
  }
  const auto binding = many.relay.take_outgoing();
  ASSERT_TRUE(expulsion_in(binding, 2));
  EXPECT_EQ(expulsion_in(binding, 2)->authority, Authority::majority);
}

// They may go on by themselves, and then their logs must be alike.
TEST(RelayOfMinority, TellsThoseThatItGivesUpOfNoneOfThem) {
  Hub hub(5);
  for (const Outgoing& out : give_up_three_of_five(hub.relay)) {
    const auto* const notice = std::get_if<Notice>(&out.message);
    EXPECT_FALSE(notice && notice->kind == Kind::lost && out.rank != 0 && out.rank != 4) << out.rank;
  }
}

// A connection that closes may be the network's doing, too.
TEST(RelayOfMinority, BindsNobodyWhereConnectionsHaveClosed) {
  Hub hub(3);
  for (const int rank : {1, 2}) hub.relay.lose(rank, "closed", Evidence::closing, at(1));
  hub.relay.judge(at(100));
  const auto said = hub.relay.take_outgoing();
  ASSERT_TRUE(expulsion_in(said, 1));
  EXPECT_EQ(expulsion_in(said, 1)->authority, Authority::minority);
  EXPECT_EQ(hub.log.behind(0)[0].code, ErrorCode::peer_lost);
}

TEST(RelayOfMinority, TakesNobodyForDeadWhoHasGivenItUp) {
  Hub hub(4, true);
  hub.relay.lose(1, "it goes on without them", Evidence::gave_up, at(1));
  hub.relay.judge(at(100));
  EXPECT_TRUE(hub.log.is_lost(1));
  EXPECT_TRUE(hub.log.may_live(1));
}

TEST(RelayOfMinority, StepsDownOnceAMajorityHasTurnedAway) {
  Hub hub(4);
  hub.relay.received(2, Desertion{}, at(1));
  hub.relay.received(3, Desertion{}, at(1));
  EXPECT_FALSE(hub.relay.is_deserted());  // half of them, without the lowest
  hub.relay.received(1, Desertion{}, at(2));
  EXPECT_TRUE(hub.relay.is_deserted());
}

TEST(RelayOfMinority, DecidesNothingWithWhoHasTurnedAway) {
  Hub hub(4);
  const Vote vote{.communicator = 5, .ranks = {0, 1, 2, 3}};
  hub.relay.received(3, vote, at(1));
  hub.relay.received(3, Desertion{}, at(1));
  for (const int rank : {0, 1, 2}) hub.relay.received(rank, vote, at(2));
  EXPECT_TRUE(told(hub.relay, Kind::decided, 0).empty());
  hub.relay.received(3, Ping{}, at(3));  // it has come back
  EXPECT_EQ(told(hub.relay, Kind::decided, 0).size(), 4u);
}

// One that answers lives, and has time to turn away from the old hub; but not for ever.
TEST(RelayOfLoyalRanks, AreWaitedForLongerThanThoseThatDoNotAnswer) {
  EventLog log(4);
  Relay relay(1, {0, 1, 2, 3}, log, Farewells(), kPace, kStart, until_start(4), false);
  relay.lose(0, "it is silent", Evidence::silence, at(0));
  relay.received(2, Enlistment{0}, at(1));
  int summoned = 0;
  for (int s = 1; s <= 25; ++s) {
    relay.received(2, Ping{}, at(1000 * s));
    relay.tick(at(1000 * s));
    for (const Outgoing& out : relay.take_outgoing())
      if (out.rank == 3 && std::holds_alternative<Summons>(out.message)) {
        ++summoned;
        relay.received(3, Ping{}, at(1000 * s + 1));
      }
    EXPECT_EQ(log.is_gone(3), s >= 24) << s;
  }
  EXPECT_GE(summoned, 20);
}

// It was stopped itself, right after it had become the hub.
TEST(RelayOfLoyalRanks, HaveTheirTimeOnceTheHubIsAwake) {
  EventLog log(4);
  Relay relay(1, {0, 0, 0, 0}, log, Farewells(), kPace, kStart, until_start(4), false);
  relay.lose(0, "it died", Evidence::kernel, at(0));
  relay.tick(at(60'000));
  relay.received(2, Enlistment{0}, at(60'001));
  relay.received(3, Enlistment{0}, at(60'001));
  EXPECT_TRUE(log.is_lost(0));
  EXPECT_FALSE(log.is_gone(2) || log.is_gone(3));
}

// --- the other end

const Pace kSeatPace{milliseconds(500), milliseconds(5'000)};

Notice word_of_minority(int from) {
  return expulsion(from, {.authority = Authority::minority, .why = "no word from it"});
}

TEST(SeatGivenUpByMinority, TurnsToTheNextHub) {
  Seat seat(2, {0, 0, 1, 1}, kSeatPace, {});
  seat.received(0, word_of_minority(0), at(1));
  EXPECT_EQ(seat.hub(), 1);
  seat.received(1, word_of_minority(1), at(2));
  EXPECT_TRUE(seat.is_hub());
  EXPECT_FALSE(seat.is_over());
  seat.connected(at(3));
  seat.received(3, Enlistment{0}, at(3));
  seat.look(at(100));
  EXPECT_TRUE(seat.log().is_lost(0) && seat.log().is_lost(1) && !seat.log().is_gone(3));
}

TEST(SeatGivenUpByMinority, AHubTakesThemForLost) {
  Seat hub(0, {0, 0, 0, 1}, kSeatPace, {});
  hub.received(3, word_of_minority(3), at(1));
  hub.look(at(100));
  EXPECT_FALSE(hub.is_over());
  EXPECT_TRUE(hub.log().is_lost(3));
  hub.received(3, word_of_minority(3), at(101));  // it says so again
  EXPECT_FALSE(hub.is_over());
}

TEST(SeatGivenUpByMinority, ObeysAMajority) {
  Seat seat(2, {0, 0, 1, 1}, kSeatPace, {});
  seat.received(0, expulsion(0, {.why = "no word from it"}), at(1));
  EXPECT_TRUE(seat.is_over());
}

TEST(SeatGivenUpByMinority, AnswersWhoCallsItThatItWaitsForItsHub) {
  Seat seat(2, {0, 1, 2}, kSeatPace, {});
  seat.received(1, Summons{}, at(1));
  const auto said = seat.take_outgoing();
  ASSERT_EQ(said.size(), 1u);
  EXPECT_EQ(said[0].rank, 1);
  EXPECT_TRUE(std::holds_alternative<Ping>(said[0].message));
  EXPECT_EQ(seat.hub(), 0);
}

}  // namespace
}  // namespace tutti::internal
