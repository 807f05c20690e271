#include "control/relay.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <tuple>

#include "control/one_hub.h"

namespace tutti::internal {
namespace {

using namespace testing_relay;

TEST(Relay, ADeathIsToldToAll) {
  Hub hub(4, true);
  hub.relay.lose(2, "reset", Evidence::closing, at(1));
  EXPECT_EQ(told(hub.relay, Kind::lost, 2), (std::vector{0, 1, 3}));
  EXPECT_TRUE(hub.log.is_lost(2));
  hub.relay.lose(2, "again", Evidence::closing, at(2));
  EXPECT_TRUE(hub.relay.take_outgoing().empty());
}

// Of two hosts that a broken network takes away together, none is judged alone.
TEST(Relay, SuspectsAreJudgedTogether) {
  Hub hub(5);
  hub.relay.lose(2, "reset", Evidence::closing, at(0));
  hub.relay.lose(3, "reset", Evidence::closing, at(15));
  EXPECT_TRUE(hub.relay.take_outgoing().empty());
  EXPECT_EQ(hub.relay.due(), at(40));
  hub.relay.tick(at(25));
  EXPECT_TRUE(told(hub.relay, Kind::lost, 2).empty());
  hub.relay.tick(at(40));
  EXPECT_EQ(told(hub.relay, Kind::lost, 3), (std::vector{0, 1, 4}));
  EXPECT_TRUE(hub.log.is_lost(2));
}

// The last word of each came at another time.
TEST(Relay, RanksThatFallSilentOneAfterTheOtherAreJudgedTogether) {
  Hub hub(5);
  hub.relay.received(1, Ping{}, at(0));
  for (const int rank : {2, 3, 4}) hub.relay.received(rank, Ping{}, at(900));
  for (int s = 1; s <= 19; ++s) hub.relay.tick(at(1000 * s + 1));
  ASSERT_EQ(hub.log.size(), 4u);
  for (const Notice& event : hub.log.behind(0)) EXPECT_EQ(event.code, ErrorCode::partitioned) << event.peer;
}

TEST(Relay, AGoodbyeIsNoDeath) {
  Hub hub(3);
  hub.relay.received(1, Goodbye{}, at(1));
  EXPECT_EQ(told(hub.relay, Kind::left, 1), (std::vector{0, 1, 2}));  // rank 1 hears that it has been heard
  hub.relay.lose(1, "closed", Evidence::closing, at(1));
  EXPECT_TRUE(hub.relay.take_outgoing().empty());
  EXPECT_TRUE(hub.log.is_gone(1));
  EXPECT_FALSE(hub.log.is_gone(2));
}

TEST(Relay, TheFirstPoisonOfACommunicatorIsTheVerdictForAll) {
  Hub hub(3);
  Notice poison;
  poison.kind = Kind::poisoned;
  poison.peer = 0;  // whatever it claims
  poison.communicator = 5;
  poison.about = 2;
  poison.message = "why";
  hub.relay.received(1, poison, at(1));
  poison.message = "another reason";
  hub.relay.received(2, poison, at(1));
  const auto out = hub.relay.take_outgoing();
  ASSERT_EQ(out.size(), 3u);
  for (const auto& o : out) {
    const auto& notice = std::get<Notice>(o.message);
    EXPECT_EQ(notice.peer, 1);
    EXPECT_EQ(notice.about, 2);
    EXPECT_EQ(notice.communicator, 5u);
    EXPECT_EQ(notice.serial, 1u);
    EXPECT_EQ(notice.message, "why");
  }
}

TEST(Relay, OnlyARankOfTheSameHostReportsADeath) {
  for (const bool one_host : {false, true}) {
    Hub hub(3, one_host);
    hub.relay.received(1, Death{2}, at(1));
    EXPECT_EQ(hub.log.is_lost(2), one_host);
    for (const int nobody : {-1, 0, 3, 1000}) hub.relay.received(1, Death{nobody}, at(1));
    EXPECT_FALSE(hub.log.is_gone(0));
    Notice lie;
    lie.kind = Kind::lost;
    lie.peer = 1;
    lie.serial = hub.log.size() + 1;
    hub.relay.received(0, lie, at(1));
    EXPECT_FALSE(hub.log.is_gone(1));
  }
}

TEST(Relay, ARankThatWasGivenUpIsToldSoWheneverItSpeaks) {
  Hub hub(3, true);
  hub.relay.lose(2, "it was stopped", Evidence::silence, at(1));
  for (int i = 0; i < 2; ++i) {
    const auto expelled = [](const Outgoing& out) {
      const auto* notice = std::get_if<Notice>(&out.message);
      return out.rank == 2 && notice != nullptr && notice->kind == Kind::expelled &&
             notice->message == "it was stopped";
    };
    const auto out = hub.relay.take_outgoing();
    EXPECT_EQ(std::count_if(out.begin(), out.end(), expelled), 1);
    hub.relay.received(2, Ping{}, at(100));
  }
}

TEST(Relay, SilenceIsNoMajority) {
  for (const auto& [ranks, silent, code] : {std::tuple{5, 2, ErrorCode::peer_lost},
                                            {5, 3, ErrorCode::partitioned},
                                            {4, 2, ErrorCode::peer_lost},
                                            {2, 1, ErrorCode::peer_lost}}) {
    Hub hub(ranks);
    for (int s = 1; s <= 17; ++s) {
      for (int rank = 1; rank < ranks - silent; ++rank) hub.relay.received(rank, Ping{}, at(1000 * s));
      hub.relay.tick(at(1000 * s));
    }
    ASSERT_EQ(hub.log.size(), static_cast<std::uint32_t>(silent));
    for (const Notice& event : hub.log.behind(0)) EXPECT_EQ(event.code, code) << ranks << " ranks, silent: " << silent;
  }
}

TEST(Relay, ProbesAndAnswersFindTheirWayAndOthersAreDropped) {
  Hub hub(3);
  Relay& relay = hub.relay;
  relay.received(1, Probe{0, 2, 9, 8, 7}, at(1));
  auto out = relay.take_outgoing();
  ASSERT_EQ(out.size(), 1u);
  EXPECT_EQ(out[0].rank, 2);
  EXPECT_EQ(std::get<Probe>(out[0].message).from, 1);
  Answer answer;
  answer.to = 1;
  answer.notice.sequence = 7;
  relay.received(2, answer, at(2));
  out = relay.take_outgoing();
  ASSERT_EQ(out.size(), 1u);
  EXPECT_EQ(out[0].rank, 1);
  EXPECT_EQ(std::get<Notice>(out[0].message).kind, Kind::answer);
  EXPECT_EQ(std::get<Notice>(out[0].message).peer, 2);
  for (int nobody : {-1, 3, 1000}) {
    relay.received(1, Probe{1, nobody, 9, 9, 7}, at(3));
    answer.to = nobody;
    relay.received(2, answer, at(3));
  }
  relay.received(2, Goodbye{}, at(3));
  relay.take_outgoing();
  relay.received(1, Probe{1, 2, 9, 9, 7}, at(4));
  EXPECT_TRUE(relay.take_outgoing().empty());
}

TEST(Relay, SilenceIsADeathOnlyAfterItsTime) {
  Hub hub(3, true);
  for (int s = 1; s <= 15; ++s) {
    hub.relay.received(1, Ping{}, at(1000 * s));
    hub.relay.tick(at(1000 * s));
    ASSERT_TRUE(told(hub.relay, Kind::lost, 2).empty()) << s;
  }
  hub.relay.tick(at(15'500));
  EXPECT_EQ(told(hub.relay, Kind::lost, 2), (std::vector{0, 1}));
  EXPECT_FALSE(hub.log.is_gone(1));
}

TEST(Relay, AHubThatSleptBlamesNobody) {
  Hub hub(3);
  hub.relay.tick(at(1000));
  hub.relay.tick(at(100'000));
  EXPECT_EQ(hub.log.size(), 0u);
}

// It has been suspected before. What it has said meanwhile is read first.
TEST(Relay, AHubThatSleptHearsASuspectBeforeItJudges) {
  Hub hub(4);
  for (int s = 1; s <= 16; ++s) {
    for (const int rank : {1, 2}) hub.relay.received(rank, Ping{}, at(1000 * s));
    hub.relay.tick(at(1000 * s));
  }
  for (const int rank : {1, 2}) hub.relay.received(rank, Ping{}, at(16'001));
  hub.relay.notice_sleep(at(20'000));
  for (const int rank : {1, 2, 3}) hub.relay.received(rank, Ping{}, at(20'000));
  hub.relay.judge(at(20'100));
  hub.relay.tick(at(20'101));
  EXPECT_EQ(hub.log.size(), 0u);
}

// The new hub, rank 1 of 4, waits for all that are there, and takes over what any of them knows.
TEST(Relay, ANewHubCompletesTheLogOfAll) {
  EventLog log(4);
  Relay relay(1, {0, 1, 2, 3}, log, Farewells(), kPace, kStart, until_start(4), false);
  relay.lose(0, "it died", Evidence::kernel, at(0));
  EXPECT_EQ(log.size(), 0u);
  Notice poison;
  poison.kind = Kind::poisoned;
  poison.peer = 0;
  poison.communicator = 5;
  poison.message = "late";
  relay.received(2, Enlistment{0}, at(1));
  relay.received(2, poison, at(1));
  EXPECT_TRUE(relay.take_outgoing().empty());  // nothing is decided yet
  poison.serial = 1;
  poison.message = "the old hub's verdict, which rank 3 alone has heard";
  relay.received(3, poison, at(2));
  relay.received(3, Enlistment{1}, at(2));
  ASSERT_EQ(log.size(), 2u);
  EXPECT_EQ(log.behind(0)[0].message, poison.message);
  EXPECT_EQ(log.behind(0)[1].kind, Kind::lost);
  int to_two = 0, to_three = 0;
  for (const auto& out : relay.take_outgoing()) {
    if (out.rank == 2) ++to_two;
    if (out.rank == 3) ++to_three;
  }
  EXPECT_EQ(to_two, 2);
  EXPECT_EQ(to_three, 1);
}

// Else a call that fails at once would be made again at once, without end.
TEST(Relay, AMemberThatCannotBeCalledIsNotCalledAgain) {
  EventLog log(4);
  Relay relay(1, {0, 0, 0, 0}, log, Farewells(), kPace, kStart, until_start(4), false);
  relay.lose(0, "it died", Evidence::kernel, at(0));
  EXPECT_FALSE(relay.misses(2));  // it may come by itself
  relay.tick(at(2'000));
  EXPECT_TRUE(relay.misses(2) && relay.misses(3));
  relay.lose(2, "it cannot be reached any more", Evidence::closing, at(2'001));
  EXPECT_FALSE(relay.misses(2));
  EXPECT_TRUE(relay.misses(3));
}

// A child of that rank holds its connections. Ranks of its host say so, and they alone.
TEST(Relay, ANewHubDoesNotWaitForARankOfWhoseDeathItHears) {
  EventLog log(5);
  Relay relay(1, {0, 1, 0, 0, 2}, log, Farewells(), kPace, kStart, until_start(5), false);
  relay.lose(0, "it died", Evidence::closing, at(0));
  for (const int rank : {2, 4}) relay.received(rank, Enlistment{0}, at(1));
  relay.received(4, Death{3}, at(2));
  EXPECT_EQ(log.size(), 0u);
  relay.received(2, Death{3}, at(3));
  EXPECT_TRUE(log.is_lost(3));
  relay.judge(at(100));
  EXPECT_TRUE(log.is_lost(0));
}

TEST(Relay, ANewHubWaitsHalfTheSilenceForWhoDoesNotCome) {
  EventLog log(4);
  Relay relay(1, {0, 0, 0, 0}, log, Farewells(), kPace, kStart, until_start(4), false);
  relay.lose(0, "it died", Evidence::kernel, at(0));
  relay.received(2, Enlistment{0}, at(1));
  for (int s = 1; s <= 7; ++s) {
    relay.received(2, Ping{}, at(1000 * s));
    relay.tick(at(1000 * s));
  }
  EXPECT_EQ(log.size(), 0u);
  relay.tick(at(7'600));
  EXPECT_TRUE(log.is_lost(0) && log.is_lost(3));
  EXPECT_FALSE(log.is_gone(2));
}

Vote vote_on(std::uint64_t communicator, bool has_made, std::uint32_t known = 0) {
  return {
      .communicator = communicator, .ranks = {0, 1, 2}, .on = Vote::On::making, .has_made = has_made, .known = known};
}

TEST(Relay, SaysWhoHasMadeItOnceAllHaveVoted) {
  Hub hub(4);
  hub.relay.received(2, vote_on(5, true), at(1));
  hub.relay.received(0, vote_on(5, true), at(1));
  EXPECT_TRUE(hub.relay.take_outgoing().empty());
  hub.relay.received(1, vote_on(5, false), at(2));
  const auto out = hub.relay.take_outgoing();
  ASSERT_EQ(out.size(), 4u);
  EXPECT_EQ(std::get<Notice>(out[0].message).ranks, (std::vector<std::int32_t>{0, 2}));
  hub.relay.received(1, vote_on(5, false), at(3));  // said again, to a hub that had heard it
  hub.relay.received(0, vote_on(5, true, 1), at(3));
  hub.relay.received(2, vote_on(5, true, 1), at(3));
  EXPECT_TRUE(hub.relay.take_outgoing().empty());
  hub.relay.received(1, vote_on(5, true, 1), at(4));
  EXPECT_EQ(told(hub.relay, Kind::decided, 0).size(), 4u);
}

TEST(Relay, TellsVotesOfDifferentKindsApart) {
  Hub hub(3);
  for (const int rank : {0, 1, 2}) hub.relay.received(rank, Vote{.communicator = 5, .ranks = {0, 1, 2}}, at(1));
  EXPECT_EQ(told(hub.relay, Kind::decided, 0).size(), 3u);
  for (const int rank : {0, 1, 2}) hub.relay.received(rank, vote_on(5, true), at(2));  // who do not know of that yet
  EXPECT_EQ(told(hub.relay, Kind::decided, 0).size(), 3u);
}

TEST(Relay, ARankThatTakesItsVoteBackHearsWhoHasNotVoted) {
  Hub hub(5);
  const auto recall = [&hub](int rank) {
    hub.relay.received(rank, Recall{5, Vote::On::making, 3}, at(2));
    const auto out = hub.relay.take_outgoing();
    EXPECT_EQ(out.at(0).rank, rank);
    return std::get<Notice>(out.at(0).message).ranks;
  };
  const auto vote = [&hub](int rank) { hub.relay.received(rank, vote_on(5, true), at(1)); };
  using Ranks = std::vector<std::int32_t>;
  EXPECT_EQ(recall(0), Ranks{});  // there is no vote
  vote(0);
  EXPECT_EQ(recall(0), (Ranks{1, 2}));
  vote(0), vote(1);
  EXPECT_EQ(recall(0), (Ranks{2}));
  EXPECT_EQ(recall(1), (Ranks{2}));  // rank 0 had voted while it waited
  vote(2);
  EXPECT_TRUE(hub.relay.take_outgoing().empty());  // not decided
  EXPECT_EQ(recall(2), (Ranks{0, 1}));
  vote(0), vote(1);
  EXPECT_EQ(recall(0), (Ranks{2}));
  vote(2);
  EXPECT_EQ(recall(1), (Ranks{0}));  // who is named only because all others had voted
  vote(0), vote(1), vote(2);
  EXPECT_EQ(told(hub.relay, Kind::decided, 0).size(), 5u);
}

TEST(Relay, DecidesNoVoteWithoutARankOrOnAFailure) {
  Hub hub(4);
  hub.relay.received(0, vote_on(5, true), at(1));
  hub.relay.received(1, vote_on(5, true), at(1));
  hub.relay.received(2, Goodbye{}, at(2));
  hub.relay.received(0, vote_on(6, true), at(3));
  EXPECT_TRUE(told(hub.relay, Kind::decided, 0).empty());
  Hub other(3);
  Notice poison;
  poison.kind = Kind::poisoned;
  poison.communicator = 5;
  for (const int rank : {0, 1}) other.relay.received(rank, vote_on(5, true), at(1));
  other.relay.received(2, poison, at(2));
  other.relay.received(2, vote_on(5, true), at(3));
  EXPECT_TRUE(told(other.relay, Kind::decided, 0).empty());
}

// So it is suspected no longer, and has to be watched as others are.
TEST(Relay, ARankBeforeTheHubThatSpeaksOnceMoreIsNotWaitedForForEver) {
  EventLog log(4);
  Relay relay(1, {0, 1, 2, 3}, log, Farewells(), kPace, kStart, until_start(4), false);
  relay.lose(0, "it is silent", Evidence::silence, at(0));
  relay.received(2, Enlistment{0}, at(1));
  relay.received(0, Ping{}, at(2));
  relay.received(3, Enlistment{0}, at(3));
  for (int s = 1; s <= 9; ++s) {
    relay.received(2, Ping{}, at(1000 * s));
    relay.received(3, Ping{}, at(1000 * s));
    relay.tick(at(1000 * s));
  }
  EXPECT_TRUE(log.is_lost(0));
  EXPECT_FALSE(log.is_gone(2) || log.is_gone(3));
}

}  // namespace
}  // namespace tutti::internal
