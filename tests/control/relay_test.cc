#include "control/relay.h"

#include <gtest/gtest.h>

namespace tutti::internal {
namespace {

using std::chrono::milliseconds;
using Kind = Notice::Kind;

const Pace kPace{milliseconds(1000), milliseconds(15'000)};
const Clock::time_point kStart{};

Clock::time_point at(int ms) { return kStart + milliseconds(ms); }

// The notices about `peer` of kind `kind` among what is to be sent, as the list of receivers.
std::vector<int> told(Relay& relay, Kind kind, int peer) {
  std::vector<int> ranks;
  for (const auto& out : relay.take_outgoing())
    if (const auto* notice = std::get_if<Notice>(&out.message); notice && notice->kind == kind && notice->peer == peer)
      ranks.push_back(out.rank);
  return ranks;
}

TEST(Relay, ADeathIsToldToEveryOther) {
  Relay relay(4, kPace, kStart);
  relay.closed(2, "reset");
  EXPECT_EQ(told(relay, Kind::lost, 2), (std::vector{0, 1, 3}));
  EXPECT_FALSE(relay.is_present(2));
  relay.closed(2, "again");
  EXPECT_TRUE(relay.take_outgoing().empty());
}

TEST(Relay, AGoodbyeIsNoDeath) {
  Relay relay(3, kPace, kStart);
  relay.received(1, Goodbye{}, at(1));
  EXPECT_EQ(told(relay, Kind::left, 1), (std::vector{0, 2}));
  relay.closed(1, "closed");
  EXPECT_TRUE(relay.take_outgoing().empty());
  EXPECT_FALSE(relay.is_present(1));
  EXPECT_TRUE(relay.is_present(2));
}

TEST(Relay, PoisonReachesEveryOtherAndSaysWhoSentIt) {
  Relay relay(3, kPace, kStart);
  Notice poison;
  poison.kind = Kind::poisoned;
  poison.peer = 0;  // whatever it claims
  poison.communicator = 5;
  poison.message = "why";
  relay.received(1, poison, at(1));
  const auto out = relay.take_outgoing();
  ASSERT_EQ(out.size(), 2u);
  for (const auto& o : out) {
    const auto& notice = std::get<Notice>(o.message);
    EXPECT_NE(o.rank, 1);
    EXPECT_EQ(notice.peer, 1);
    EXPECT_EQ(notice.communicator, 5u);
    EXPECT_EQ(notice.message, "why");
  }
}

TEST(Relay, AMemberCannotReportTheDeathOfAnother) {
  Relay relay(3, kPace, kStart);
  Notice lie;
  lie.kind = Kind::lost;
  lie.peer = 2;
  relay.received(1, lie, at(1));
  EXPECT_TRUE(relay.take_outgoing().empty());
  EXPECT_TRUE(relay.is_present(2));
}

TEST(Relay, ProbesAndAnswersFindTheirWayAndOthersAreDropped) {
  Relay relay(3, kPace, kStart);
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
  relay.closed(2, "");
  relay.take_outgoing();
  relay.received(1, Probe{1, 2, 9, 9, 7}, at(4));
  EXPECT_TRUE(relay.take_outgoing().empty());
}

TEST(Relay, SilenceIsADeathOnlyAfterItsTime) {
  Relay relay(3, kPace, kStart);
  for (int s = 1; s <= 15; ++s) {
    relay.received(1, Ping{}, at(1000 * s));
    relay.tick(at(1000 * s));
    ASSERT_TRUE(told(relay, Kind::lost, 2).empty()) << s;
  }
  relay.tick(at(15'500));
  EXPECT_EQ(told(relay, Kind::lost, 2), (std::vector{0, 1}));
  EXPECT_TRUE(relay.is_present(1));
}

TEST(Relay, AHubThatSleptBlamesNobody) {
  Relay relay(3, kPace, kStart);
  relay.tick(at(1000));
  relay.tick(at(100'000));
  EXPECT_TRUE(told(relay, Kind::lost, 1).empty());
  EXPECT_TRUE(relay.is_present(1) && relay.is_present(2));
}

Farewell farewell_of(std::uint64_t communicator, std::uint32_t calls, std::uint64_t digest) {
  return {communicator, 0, 3, {calls, digest, Tag{{calls, digest}}}};
}

// What the relay answers to `rank`, who says this.
Notice answer_to(Relay& relay, int rank, const Farewell& farewell) {
  relay.received(rank, farewell, at(1));
  const auto out = relay.take_outgoing();
  EXPECT_EQ(out.size(), 1u);
  EXPECT_EQ(out.at(0).rank, rank);
  return std::get<Notice>(out.at(0).message);
}

TEST(Relay, AFarewellIsHeldAgainstTheFirst) {
  Relay relay(4, kPace, kStart);
  EXPECT_EQ(answer_to(relay, 2, farewell_of(9, 5, 50)).kind, Kind::agreed);
  EXPECT_EQ(answer_to(relay, 3, farewell_of(8, 6, 60)).kind, Kind::agreed);  // of another communicator
  EXPECT_EQ(answer_to(relay, 0, farewell_of(9, 5, 50)).kind, Kind::agreed);
  const Notice notice = answer_to(relay, 1, farewell_of(9, 5, 51));
  EXPECT_EQ(notice.kind, Kind::differed);
  EXPECT_EQ(notice.peer, 2);
  EXPECT_EQ(notice.communicator, 9u);
  EXPECT_EQ(notice.sequence, 5u);
  EXPECT_EQ(notice.last, (Tag{{5, 50}}));
  // All three ranks of it have left: the number may stand for another communicator now.
  EXPECT_EQ(answer_to(relay, 1, farewell_of(9, 1, 10)).kind, Kind::agreed);
}

// Communicator 9 has the ranks 0, 1 and 2; 91 is its lane from rank 1 to rank 2.
Farewell farewell_of_lane(std::uint32_t calls, int peer) {
  Farewell farewell = farewell_of(91, calls, calls);
  farewell.ranks = 2;
  farewell.whole = 9;
  farewell.peer = peer;
  return farewell;
}

TEST(Relay, ALaneThatOneEndNeverMadeIsToldToTheEndThatLeavesLater) {
  for (const bool receiver_first : {false, true}) {
    Relay relay(4, kPace, kStart);
    const auto receiver_leaves = [&] { return answer_to(relay, 2, farewell_of(9, 5, 50)); };
    if (receiver_first) {
      EXPECT_EQ(receiver_leaves().kind, Kind::agreed);
    }
    const Notice of_lane = answer_to(relay, 1, farewell_of_lane(3, 2));
    EXPECT_EQ(of_lane.communicator, 91u);
    EXPECT_EQ(of_lane.kind, receiver_first ? Kind::differed : Kind::agreed);
    EXPECT_EQ(of_lane.peer, receiver_first ? 2 : 1);
    EXPECT_EQ(of_lane.sequence, 0u);
    EXPECT_EQ(answer_to(relay, 1, farewell_of(9, 5, 50)).kind, Kind::agreed);
    EXPECT_EQ(answer_to(relay, 0, farewell_of(9, 5, 50)).kind, Kind::agreed);
    if (receiver_first) continue;
    const Notice of_whole = receiver_leaves();
    EXPECT_EQ(of_whole.communicator, 9u);
    EXPECT_EQ(of_whole.kind, Kind::differed);
    EXPECT_EQ(of_whole.peer, 1);
    EXPECT_EQ(of_whole.sequence, 3u);
  }
}

TEST(Relay, ALaneThatBothEndsMadeIsComparedInAnyOrder) {
  for (const std::uint32_t received : {3u, 2u}) {
    const Kind verdict = received == 3 ? Kind::agreed : Kind::differed;
    Relay relay(4, kPace, kStart);
    EXPECT_EQ(answer_to(relay, 1, farewell_of_lane(3, 2)).kind, Kind::agreed);
    EXPECT_EQ(answer_to(relay, 1, farewell_of(9, 5, 50)).kind, Kind::agreed);
    EXPECT_EQ(answer_to(relay, 2, farewell_of_lane(received, 1)).kind, verdict);
    EXPECT_EQ(answer_to(relay, 2, farewell_of(9, 5, 50)).kind, Kind::agreed);  // the lane has been told
    // Rank 2 leaves the communicator while a receive goes on, and the lane after rank 1 has left both.
    Farewell goes_on = farewell_of(9, 5, 50);
    goes_on.goes_on = true;
    Relay other(4, kPace, kStart);
    EXPECT_EQ(answer_to(other, 2, goes_on).kind, Kind::agreed);
    EXPECT_EQ(answer_to(other, 1, farewell_of_lane(3, 2)).kind, Kind::agreed);
    EXPECT_EQ(answer_to(other, 1, farewell_of(9, 5, 50)).kind, Kind::agreed);
    EXPECT_EQ(answer_to(other, 2, farewell_of_lane(received, 1)).kind, verdict);
  }
}

// Also where rank 0 has left the job before: by what it has handed on.
TEST(Relay, ALaneThatOneEndNeverMadeIsFoundAfterRankZeroHasLeft) {
  for (const bool receiver_first : {false, true}) {
    Relay relay(4, kPace, kStart);
    answer_to(relay, 0, farewell_of(9, 5, 50));
    if (receiver_first) {
      answer_to(relay, 2, farewell_of(9, 5, 50));
    } else {
      answer_to(relay, 1, farewell_of_lane(3, 2));
    }
    relay.received(0, Goodbye{}, at(1));
    ControlMember member(receiver_first ? 1 : 2, 4, kPace, kStart);
    for (const auto& out : relay.take_outgoing())
      if (out.rank == 2) member.received(out.message, at(2));  // all are told the same
    member.hub_is_gone();
    member.take_notices();
    Farewell farewell = receiver_first ? farewell_of_lane(3, 2) : farewell_of(9, 5, 50);
    farewell.rank = receiver_first ? 1 : 2;
    member.say_farewell(farewell);
    const auto notices = member.take_notices();
    ASSERT_EQ(notices.size(), 1u);
    EXPECT_EQ(notices[0].kind, Kind::differed);
    EXPECT_EQ(notices[0].peer, receiver_first ? 2 : 1);
  }
}

TEST(Relay, FarewellsAnswerForARankThatHasLeftTheJob) {
  Relay relay(4, kPace, kStart);
  Farewell goodbye = farewell_of(9, 5, 50);
  answer_to(relay, 1, farewell_of_lane(3, 2));
  answer_to(relay, 1, goodbye);
  relay.received(1, Goodbye{}, at(1));
  relay.take_outgoing();
  const auto asks = [&](int from, std::uint64_t communicator, std::uint32_t sequence) {
    relay.received(from, Probe{from, 1, communicator, 9, sequence}, at(2));
    const auto out = relay.take_outgoing();
    if (out.empty()) return std::optional<Notice>();
    EXPECT_EQ(out.at(0).rank, from);
    return std::optional(std::get<Notice>(out.at(0).message));
  };
  for (const std::uint32_t sequence : {4u, 5u, 6u}) {
    const auto answer = asks(2, 9, sequence);
    ASSERT_TRUE(answer);
    EXPECT_EQ(answer->kind, Kind::answer);
    EXPECT_EQ(answer->peer, 1);
    EXPECT_EQ(answer->communicator, 9u);
    EXPECT_EQ(answer->sequence, sequence);
    EXPECT_TRUE(answer->has_left);
    EXPECT_EQ(answer->entered, sequence <= 5);
    EXPECT_EQ(answer->call, sequence == 5 ? (Tag{{5, 50}}) : Tag{});
  }
  EXPECT_TRUE(asks(2, 91, 3)->entered);   // what it sent to rank 2
  EXPECT_FALSE(asks(2, 92, 1)->entered);  // a lane that it never made
  EXPECT_TRUE(asks(2, 92, 1)->has_left);
  relay.received(3, Probe{3, 1, 8, 8, 1}, at(3));  // of this nothing is known
  EXPECT_TRUE(relay.take_outgoing().empty());
}

TEST(Relay, RankZeroHandsFarewellsOnWhenItLeaves) {
  Relay relay(3, kPace, kStart);
  answer_to(relay, 0, farewell_of(9, 5, 50));
  relay.received(0, Goodbye{}, at(1));
  const auto out = relay.take_outgoing();
  ASSERT_EQ(out.size(), 4u);  // to each the farewell, then that rank 0 has left
  for (int i : {0, 1}) EXPECT_EQ(std::get<Farewell>(out[i].message).account.digest, 50u);
  for (int i : {2, 3}) EXPECT_EQ(std::get<Notice>(out[i].message).kind, Kind::left);

  ControlMember member(1, 3, kPace, kStart);
  member.say_farewell(farewell_of(9, 5, 51));  // on its way to the hub, which answers no more
  ASSERT_EQ(member.take_outgoing().size(), 1u);
  member.received(out[0].message, at(2));
  member.received(out[2].message, at(2));
  ASSERT_EQ(member.take_notices().size(), 1u);
  EXPECT_TRUE(member.knows_answer({1, 0, 9, 9, 5}));
  EXPECT_EQ(member.take_notices().at(0).call, (Tag{{5, 50}}));
  EXPECT_FALSE(member.knows_answer({1, 2, 9, 9, 5}));  // which has not left
  member.closed("closed");
  auto notices = member.take_notices();
  ASSERT_EQ(notices.size(), 1u);
  EXPECT_EQ(notices[0].kind, Kind::differed);
  EXPECT_EQ(notices[0].peer, 0);
  member.say_farewell(farewell_of(7, 1, 10));  // of which nothing is known
  notices = member.take_notices();
  ASSERT_EQ(notices.size(), 1u);
  EXPECT_EQ(notices[0].kind, Kind::agreed);
  EXPECT_TRUE(member.take_outgoing().empty());
}

TEST(ControlMember, AnswersPingsAndProbes) {
  ControlMember member(1, 3, kPace, kStart);
  auto history = std::make_shared<CallHistory>();
  const auto enter = [&](std::uint32_t sequence) {
    history->begins(sequence, Tag{{10 * sequence, 10 * sequence + 1}});
    history->entered(sequence);
  };
  enter(6);
  history->completed(6);
  enter(7);
  member.publish(9, history);
  member.received(Ping{}, at(1));
  EXPECT_TRUE(std::holds_alternative<Ping>(member.take_outgoing().at(0)));
  const auto answer_to = [&](std::uint64_t communicator, std::uint32_t sequence) {
    member.received(Probe{2, 1, communicator, communicator, sequence}, at(2));
    const auto out = member.take_outgoing();
    EXPECT_EQ(std::get<Answer>(out.at(0)).to, 2);
    return std::get<Answer>(out.at(0)).notice;
  };
  EXPECT_TRUE(answer_to(9, 7).entered);
  EXPECT_EQ(answer_to(9, 7).call, (Tag{{7ull << 32 | 70, 71}}));
  EXPECT_EQ(answer_to(9, 7).last, (Tag{{6ull << 32 | 60, 61}}));
  EXPECT_FALSE(answer_to(9, 8).entered);
  EXPECT_EQ(answer_to(9, 8).sequence, 8u);
  EXPECT_FALSE(answer_to(10, 7).entered);
  constexpr std::uint32_t kLast = 7 + CallHistory::kKept;
  for (std::uint32_t s = 8; s <= kLast; ++s) enter(s);
  EXPECT_TRUE(answer_to(9, 7).entered);  // too long ago to say which
  EXPECT_EQ(answer_to(9, 7).call, Tag{});
  EXPECT_FALSE(answer_to(9, 7).has_left);
  member.unpublish(9);
  EXPECT_TRUE(answer_to(9, kLast).entered);
  EXPECT_TRUE(answer_to(9, kLast).has_left);
  EXPECT_FALSE(answer_to(9, kLast + 1).entered);
}

TEST(ControlMember, RemembersTheCommunicatorsThatItHasLeftLately) {
  ControlMember member(1, 3, kPace, kStart);
  for (std::uint64_t communicator = 1; communicator <= 300; ++communicator) {
    member.publish(communicator, std::make_shared<CallHistory>());
    member.unpublish(communicator);
  }
  const auto has_left = [&](std::uint64_t communicator) {
    member.received(Probe{2, 1, communicator, communicator, 1}, at(1));
    return std::get<Answer>(member.take_outgoing().at(0)).notice.has_left;
  };
  EXPECT_TRUE(has_left(300));
  EXPECT_TRUE(has_left(200));
  EXPECT_FALSE(has_left(1));
}

TEST(ControlMember, HasLeftTheLanesOfACommunicatorThatItHasLeft) {
  ControlMember member(1, 3, kPace, kStart);
  member.publish(9, std::make_shared<CallHistory>());
  member.publish(91, std::make_shared<CallHistory>());
  const auto has_left = [&](std::uint64_t lane) {
    member.received(Probe{2, 1, lane, 9, 1}, at(1));
    return std::get<Answer>(member.take_outgoing().at(0)).notice.has_left;
  };
  EXPECT_FALSE(has_left(92));
  member.unpublish(9);
  EXPECT_TRUE(has_left(92));   // it never made this one
  EXPECT_FALSE(has_left(91));  // whose calls go on
  member.unpublish(91);
  EXPECT_TRUE(has_left(91));
}

TEST(ControlMember, HearsOfEachEndOnce) {
  ControlMember member(1, 3, kPace, kStart);
  Notice notice;
  notice.kind = Kind::left;
  notice.peer = 2;
  member.received(notice, at(1));
  notice.kind = Kind::lost;
  member.received(notice, at(2));
  notice.peer = 99;
  member.received(notice, at(2));
  const auto notices = member.take_notices();
  ASSERT_EQ(notices.size(), 1u);
  EXPECT_EQ(notices[0].kind, Kind::left);
  EXPECT_TRUE(member.is_gone(2));
}

TEST(ControlMember, TheHubsEndIsADeathUnlessItLeft) {
  ControlMember member(1, 3, kPace, kStart);
  member.closed("reset");
  const auto notices = member.take_notices();
  ASSERT_EQ(notices.size(), 1u);
  EXPECT_EQ(notices[0].kind, Kind::lost);
  EXPECT_EQ(notices[0].peer, 0);

  ControlMember other(1, 3, kPace, kStart);
  Notice left;
  left.kind = Kind::left;
  left.peer = 0;
  other.received(left, at(1));
  other.closed("closed");
  EXPECT_EQ(other.take_notices().size(), 1u);
}

TEST(ControlMember, ASilentHubIsLostButNotByASleeper) {
  ControlMember member(1, 3, kPace, kStart);
  for (int s = 1; s <= 15; ++s) member.tick(at(1000 * s));
  EXPECT_TRUE(member.take_notices().empty());
  member.tick(at(100'000));
  EXPECT_TRUE(member.take_notices().empty());
  for (int s = 101; s <= 116; ++s) member.tick(at(1000 * s));
  EXPECT_EQ(member.take_notices().size(), 1u);
}

}  // namespace
}  // namespace tutti::internal
