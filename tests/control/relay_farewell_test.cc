#include <gtest/gtest.h>

#include <optional>
#include <utility>
#include <vector>

#include "control/one_hub.h"
#include "types/call.h"

namespace tutti::internal {
namespace {

using namespace testing_relay;

Farewell farewell_of(std::uint64_t communicator, std::uint32_t calls, std::uint64_t digest) {
  return {communicator, 0, 3, {calls, digest, Tag{{calls, digest}}}};
}

// What the relay answers to `rank`, who says this. If it tells all ranks of a failure, it does so first.
Notice answer_to(Relay& relay, int rank, const Farewell& farewell, std::optional<Notice>* failure = nullptr) {
  relay.received(rank, farewell, at(1));
  auto out = relay.take_outgoing();
  while (failure != nullptr && out.size() > 1) {
    *failure = std::get<Notice>(out.front().message);
    EXPECT_EQ((*failure)->kind, Kind::poisoned);
    out.erase(out.begin());
  }
  EXPECT_EQ(out.size(), 1u);
  EXPECT_EQ(out.at(0).rank, rank);
  return std::get<Notice>(out.at(0).message);
}

TEST(Relay, AFarewellIsHeldAgainstTheFirst) {
  Hub hub(4);
  Relay& relay = hub.relay;
  EXPECT_EQ(answer_to(relay, 2, farewell_of(9, 5, 50)).kind, Kind::agreed);
  EXPECT_EQ(answer_to(relay, 3, farewell_of(8, 6, 60)).kind, Kind::agreed);  // of another communicator
  EXPECT_EQ(answer_to(relay, 0, farewell_of(9, 5, 50)).kind, Kind::agreed);
  std::optional<Notice> failure;
  const Notice notice = answer_to(relay, 1, farewell_of(9, 5, 51), &failure);
  EXPECT_TRUE(failure);
  EXPECT_EQ(notice.kind, Kind::differed);
  EXPECT_EQ(notice.peer, 2);
  EXPECT_EQ(notice.communicator, 9u);
  EXPECT_EQ(notice.sequence, 5u);
  EXPECT_EQ(notice.last, (Tag{{5, 50}}));
  // All three ranks of it have left: the number may stand for another communicator now.
  EXPECT_EQ(answer_to(relay, 1, farewell_of(9, 1, 10)).kind, Kind::agreed);
}

// All that have not left are to hear of it, once.
TEST(Relay, AFarewellThatDiffersIsAFailureForAll) {
  Hub hub(4);
  Relay& relay = hub.relay;
  answer_to(relay, 2, farewell_of(9, 5, 50));
  relay.received(1, farewell_of(9, 5, 51), at(1));
  std::vector<int> heard;
  for (const auto& out : relay.take_outgoing()) {
    const Notice& notice = std::get<Notice>(out.message);
    if (notice.kind == Kind::differed) {
      EXPECT_EQ(heard, (std::vector{0, 1, 2, 3}));  // before the answer
      continue;
    }
    heard.push_back(out.rank);
    EXPECT_EQ(notice.kind, Kind::poisoned);
    EXPECT_EQ(notice.code, ErrorCode::mismatch);
    EXPECT_EQ(notice.communicator, 9u);
    EXPECT_EQ(notice.peer, 1);
    EXPECT_EQ(notice.about, 2);
    EXPECT_EQ(notice.call, (Tag{{5, 51}}));
    EXPECT_EQ(notice.last, (Tag{{5, 50}}));
  }
  EXPECT_EQ(heard.size(), 4u);
  EXPECT_EQ(answer_to(relay, 0, farewell_of(9, 5, 52)).kind, Kind::differed);  // and no more
}

Farewell farewell_of_rows(std::uint32_t calls, std::vector<CallRow> rows) {
  const Tag last = rows.empty() ? Tag{} : Call::numbered(rows.back().kind, calls);
  return {.communicator = 9, .ranks = 3, .account = {calls, mix(last.word[1]), last}, .rows = std::move(rows)};
}
const Tag kOne{{0, 1}}, kTwo{{0, 2}}, kThree{{0, 3}};
using Tags = std::pair<Tag, Tag>;

TEST(Farewells, TheFirstCallsOfANumberAreNamedThatDiffer) {
  const auto at = [](const Tag& kind, std::uint32_t number) { return Call::numbered(kind, number); };
  const Farewell longest = farewell_of_rows(9, {{1, kOne}, {4, kTwo}, {6, kOne}});
  EXPECT_EQ(first_difference(longest, farewell_of_rows(9, {{1, kOne}, {5, kTwo}, {6, kOne}})),
            Tags(at(kTwo, 4), at(kOne, 4)));
  EXPECT_EQ(first_difference(longest, farewell_of_rows(9, {{1, kOne}, {4, kThree}, {6, kOne}})),
            Tags(at(kTwo, 4), at(kThree, 4)));
  // Fewer calls, or none.
  EXPECT_EQ(first_difference(longest, farewell_of_rows(7, {{1, kOne}, {4, kTwo}, {6, kOne}})),
            Tags(at(kOne, 8), Tag{}));
  EXPECT_EQ(first_difference(farewell_of_rows(0, {}), longest), Tags(Tag{}, at(kOne, 1)));
  // Of what lies before the rows nothing is known: then of the first that both know, or the last of each.
  EXPECT_EQ(first_difference(longest, farewell_of_rows(9, {{5, kThree}, {6, kOne}})), Tags(at(kTwo, 5), at(kThree, 5)));
  EXPECT_EQ(first_difference(longest, farewell_of_rows(9, {{8, kOne}})), Tags(at(kOne, 9), at(kOne, 9)));
  EXPECT_EQ(first_difference(longest, farewell_of(9, 9, 7)), Tags(longest.account.last, (Tag{{9, 7}})));
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
    Hub hub(4);
    Relay& relay = hub.relay;
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
    Hub hub(4);
    Relay& relay = hub.relay;
    EXPECT_EQ(answer_to(relay, 1, farewell_of_lane(3, 2)).kind, Kind::agreed);
    EXPECT_EQ(answer_to(relay, 1, farewell_of(9, 5, 50)).kind, Kind::agreed);
    EXPECT_EQ(answer_to(relay, 2, farewell_of_lane(received, 1)).kind, verdict);
    EXPECT_EQ(answer_to(relay, 2, farewell_of(9, 5, 50)).kind, Kind::agreed);  // the lane has been told
    // Rank 2 leaves the communicator while a receive goes on, and the lane after rank 1 has left both.
    Farewell goes_on = farewell_of(9, 5, 50);
    goes_on.goes_on = true;
    Hub other_hub(4);
    Relay& other = other_hub.relay;
    EXPECT_EQ(answer_to(other, 2, goes_on).kind, Kind::agreed);
    EXPECT_EQ(answer_to(other, 1, farewell_of_lane(3, 2)).kind, Kind::agreed);
    EXPECT_EQ(answer_to(other, 1, farewell_of(9, 5, 50)).kind, Kind::agreed);
    EXPECT_EQ(answer_to(other, 2, farewell_of_lane(received, 1)).kind, verdict);
  }
}

// Also where rank 0 has left the job before: by what it has handed on.
TEST(Relay, ALaneThatOneEndNeverMadeIsFoundAfterRankZeroHasLeft) {
  for (const bool receiver_first : {false, true}) {
    Hub hub(4);
    Relay& relay = hub.relay;
    answer_to(relay, 0, farewell_of(9, 5, 50));
    if (receiver_first) {
      answer_to(relay, 2, farewell_of(9, 5, 50));
    } else {
      answer_to(relay, 1, farewell_of_lane(3, 2));
    }
    relay.leave();
    Farewells handed_on;
    for (const auto& out : relay.take_outgoing())
      if (const auto* farewell = std::get_if<Farewell>(&out.message); farewell != nullptr && out.rank == 1)
        handed_on.compare(*farewell);
    Relay next(1, Hub::hosts(4, false), hub.log, handed_on, kPace, at(2), {}, false);
    const Notice notice =
        receiver_first ? answer_to(next, 1, farewell_of_lane(3, 2)) : answer_to(next, 2, farewell_of(9, 5, 50));
    EXPECT_EQ(notice.kind, Kind::differed);
    EXPECT_EQ(notice.peer, receiver_first ? 2 : 1);
  }
}

TEST(Relay, FarewellsAnswerForARankThatHasLeftTheJob) {
  Hub hub(4);
  Relay& relay = hub.relay;
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

// Also of a call before the last one.
TEST(Relay, FarewellsAnswerWhatARankThatHasLeftHadCalled) {
  Hub hub(4);
  answer_to(hub.relay, 1, farewell_of_rows(7, {{3, kOne}, {5, kTwo}}));
  answer_to(hub.relay, 2, farewell_of_rows(7, {{3, kOne}, {5, kTwo}}));  // as the first
  hub.relay.received(2, Goodbye{}, at(1));
  hub.relay.take_outgoing();
  for (const std::uint32_t number : {2u, 3u, 4u, 6u, 7u}) {
    hub.relay.received(3, Probe{3, 2, 9, 9, number}, at(2));
    const auto out = hub.relay.take_outgoing();
    ASSERT_EQ(out.size(), 1u);
    const Notice answer = std::get<Notice>(out[0].message);
    EXPECT_TRUE(answer.entered);
    EXPECT_EQ(answer.call, number < 3 ? Tag{} : Call::numbered(number < 5 ? kOne : kTwo, number));
  }
}

TEST(Relay, AHubHandsFarewellsOnWhenItLeaves) {
  Hub hub(3);
  answer_to(hub.relay, 0, farewell_of(9, 5, 50));
  hub.relay.leave();
  const auto out = hub.relay.take_outgoing();
  ASSERT_EQ(out.size(), 4u);  // to the next hub the farewell; to all that rank 0 has left, to itself too
  EXPECT_EQ(std::get<Farewell>(out[0].message).account.digest, 50u);
  EXPECT_EQ(out[0].rank, 1);
  for (int i : {1, 2, 3}) EXPECT_EQ(std::get<Notice>(out[i].message).kind, Kind::left);
}

}  // namespace
}  // namespace tutti::internal
