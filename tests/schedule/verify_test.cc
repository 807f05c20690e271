#include "schedule/verify.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "schedule/examples.h"
#include "schedule/text.h"

namespace tutti::internal {
namespace {

// Why schedules given as text are refused; empty when they are not.
std::string reason(std::string_view text, Goal goal = {}) {
  const std::vector<Schedule> schedules = parse_schedules(text);
  return verify(schedules, Layout::of(static_cast<int>(schedules.size())), goal).reason;
}

void expect_reason(std::string_view text, std::string_view part, Goal goal = {}) {
  const std::string found = reason(text, goal);
  EXPECT_NE(found.find(part), std::string::npos) << "found: " << found;
}

const Goal kBroadcast{Collective::broadcast, 0, Order::any};
const Goal kAnyOrder{Collective::all_reduce, 0, Order::any};
const Goal kBarrier{Collective::barrier, 0, Order::any};

// Rank 0 combines and sends the result back.
constexpr std::string_view kGather = R"(
  rank 0 of 2: 1 slice x 1 chunk, 0 scratch rows
    output[slice 0 chunk 0] = finish(input[slice 0 chunk 0] + from 1)
    send output[slice 0 chunk 0] to 1
  rank 1 of 2: 1 slice x 1 chunk, 0 scratch rows
    send input[slice 0 chunk 0] to 0
    receive output[slice 0 chunk 0] from 0
)";

std::string replaced(std::string_view text, std::string_view what, std::string_view with) {
  std::string result(text);
  const std::size_t at = result.find(what);
  EXPECT_NE(at, std::string::npos) << what;
  return result.replace(at, what.size(), with);
}

TEST(Verify, AcceptsCorrectSchedulesOfEverySize) {
  for (int ranks = 1; ranks <= 16; ++ranks)
    for (const Example& example : examples(ranks)) {
      const Proof proof = verify(example.schedules, example.layout, example.goal);
      EXPECT_TRUE(proof.holds) << example.name << " on " << ranks << " ranks: " << proof.reason;
    }
}

TEST(Verify, TellsTheOrderFoundAndCountsMessages) {
  const Example shot = two_shot(Layout::of(3), 1);
  const Proof proof = verify(shot.schedules, shot.layout, shot.goal);
  EXPECT_TRUE(proof.canonical);
  EXPECT_EQ(proof.slices, std::vector<Expression>(3, {0, 1, kCombine, 2, kCombine}));
  EXPECT_EQ(proof.rounds, 2);
  EXPECT_EQ(proof.messages, 12u);

  const Example around = ring(3);
  const Proof any = verify(around.schedules, around.layout, around.goal);
  EXPECT_TRUE(any.holds);
  EXPECT_FALSE(any.canonical);
  EXPECT_EQ(any.slices[0], (Expression{0, 1, kCombine, 2, kCombine}));
  EXPECT_EQ(any.slices[1], (Expression{1, 2, kCombine, 0, kCombine}));
  EXPECT_EQ(any.rounds, 4);
}

TEST(Verify, RefusesARingWhereTheCanonicalOrderIsAsked) {
  Example around = ring(3);
  around.goal.order = Order::canonical;
  const Proof proof = verify(around.schedules, around.layout, around.goal);
  EXPECT_FALSE(proof.holds);
  EXPECT_EQ(proof.reason,
            "rank 0's output slice 1 chunk 0 is not combined in canonical order but as finish(((1 + 2) + 0))");
}

TEST(Verify, RanksMayHoldSeveralLeavesOrNone) {
  for (const std::vector<int>& leaves :
       std::vector<std::vector<int>>{{5}, {3, 2}, {0, 4, 1}, {1, 6, 0, 2}, {2, 2, 2}, {7, 1, 1, 1, 3}}) {
    const Example example = two_shot(layout_of_leaves(leaves), 2);
    const Proof proof = verify(example.schedules, example.layout, example.goal);
    EXPECT_TRUE(proof.holds && proof.canonical) << proof.reason;
  }
}

TEST(Verify, RefusesMessagesThatDoNotMatch) {
  EXPECT_EQ(reason(kGather), "");
  expect_reason(
      replaced(kGather, "receive output[slice 0 chunk 0] from 0", "output[slice 0 chunk 0] = input[slice 0 chunk 0]"),
      "rank 0 sends 1 messages to rank 1, which receives 0 from it");
  expect_reason(replaced(kGather, "from 1)", "partial from 1)"),
                "rank 0, step 0 (reduce): expects partial results but rank 1 sends input");
}

TEST(Verify, RefusesLeavesLostDoubledOrUnfinished) {
  expect_reason(replaced(kGather, "input[slice 0 chunk 0] + from 1", "from 1"), "not every leaf exactly once");
  expect_reason(replaced(kGather, "input[slice 0 chunk 0] + from 1",
                         "(input[slice 0 chunk 0] + input[slice 0 chunk 0]) + from 1"),
                "rank 0's output slice 0 chunk 0 ends as finish(((0 + 0) + 1)): not every leaf exactly once");
  expect_reason(replaced(kGather, "finish(input[slice 0 chunk 0] + from 1)", "input[slice 0 chunk 0] + from 1"),
                "a partial result is stored unfinished where elements are");
  expect_reason(replaced(kGather, "input[slice 0 chunk 0] + from 1", "from 1 + input[slice 0 chunk 0]"),
                "canonical order");
  expect_reason("rank 0 of 1: 1 slice x 1 chunk, 0 scratch rows\n output[slice 0 chunk 0] = input[slice 0 chunk 0]",
                "and then finished");
  expect_reason("rank 0 of 1: 1 slice x 1 chunk, 0 scratch rows\n", "is never written");
}

TEST(Verify, FindsADeadlockThatOnlyBufferingWouldHide) {
  // Both lend their input and wait for it before they take the other's.
  expect_reason(R"(
    rank 0 of 2: 1 slice x 1 chunk, 0 scratch rows
      send input[slice 0 chunk 0] to 1
      wait_send 1 to 1
      output[slice 0 chunk 0] = finish(input[slice 0 chunk 0] + from 1)
    rank 1 of 2: 1 slice x 1 chunk, 0 scratch rows
      send input[slice 0 chunk 0] to 0
      wait_send 1 to 0
      output[slice 0 chunk 0] = finish(from 0 + input[slice 0 chunk 0]))",
                "deadlock: rank 0, step 1 (wait_send) waits for rank 1 to take message 0; rank 1, step 1 (wait_send) "
                "waits for rank 0");
}

TEST(Verify, AReceiveMayBePostedLongBeforeItsMessage) {
  const auto ahead = [](std::string_view first, std::string_view second, std::string_view third) {
    return fmt::format(R"(
      rank 0 of 2: 2 slices x 1 chunk, 0 scratch rows
        {}
        {}
        {}
        send output[slice 0 chunk 0] to 1
      rank 1 of 2: 2 slices x 1 chunk, 0 scratch rows
        receive output[slice 0 chunk 0] from 0, message 1
        send input[slice 0 chunk 0] to 0
        output[slice 1 chunk 0] = finish(from 0 + input[slice 1 chunk 0])
        send output[slice 1 chunk 0] to 0
    )",
                       first, second, third);
  };
  const std::string receive = "receive output[slice 1 chunk 0] from 1, message 1";
  const std::string send = "send input[slice 1 chunk 0] to 1";
  const std::string reduce = "output[slice 0 chunk 0] = finish(input[slice 0 chunk 0] + from 1)";
  EXPECT_EQ(reason(ahead(receive, send, reduce)), "");
  EXPECT_EQ(reason(ahead(send, receive, reduce)), "");
  EXPECT_EQ(reason(ahead(send, reduce, receive)), "");
  expect_reason(ahead(receive, send, "wait_receive 1 from 1\n" + reduce),
                "before which comes message 0 of rank 1, which only a later step of its own takes");
}

TEST(Verify, RefusesMessagesTakenTwiceOrNotAtAllOrOutOfOrder) {
  constexpr std::string_view kReceive = "receive output[slice 0 chunk 0] from 0";
  EXPECT_EQ(reason(replaced(kGather, kReceive, fmt::format("{}, message 0", kReceive))), "");
  expect_reason(replaced(kGather, kReceive, fmt::format("{}, message 7", kReceive)),
                "rank 1 never takes message 0 of rank 0, but a later one");
  const auto takes = [](std::string_view first, std::string_view second) {
    return fmt::format(R"(
      rank 0 of 2: 2 slices x 1 chunk, 1 scratch row
        {}
        {}
      rank 1 of 2: 2 slices x 1 chunk, 0 scratch rows
        send input[slice 0 chunk 0] to 0
        send input[slice 0 chunk 0] to 0
    )",
                       first, second);
  };
  const std::string later = "receive output[slice 0 chunk 0] from 1, message 1";
  const std::string earlier = "receive output[slice 0 chunk 0] from 1, message 0";
  const std::string reduce = "output[slice 0 chunk 0] = finish(input[slice 0 chunk 0] + from 1)";
  expect_reason(takes(later, earlier), "takes message 0 of rank 1 after a receive of message 1");
  expect_reason(takes(reduce, earlier), "takes message 0 of rank 1, which a reduce before it has taken");
}

TEST(Verify, FindsARaceBetweenALoanAndAWrite) {
  // In place, the input that the peer may still be reading is the output.
  expect_reason(
      R"(
    rank 0 of 2: 1 slice x 1 chunk, 0 scratch rows
      send input[slice 0 chunk 0] to 1
      output[slice 0 chunk 0] = finish(input[slice 0 chunk 0] + from 1)
    rank 1 of 2: 1 slice x 1 chunk, 0 scratch rows
      send input[slice 0 chunk 0] to 0
      output[slice 0 chunk 0] = finish(from 0 + input[slice 0 chunk 0]))",
      "rank 1, step 1 (reduce): output[slice 0 chunk 0] is written by this rank while rank 0 may still be reading "
      "input[slice 0 chunk 0] (step 0, send)");
}

TEST(Verify, FindsAReadBeforeAMessageIsWaitedFor) {
  constexpr std::string_view text = R"(
    rank 0 of 3: 1 slice x 1 chunk, 0 scratch rows
      output[slice 0 chunk 0] = input[slice 0 chunk 0]
      send output[slice 0 chunk 0] to 1
    rank 1 of 3: 1 slice x 1 chunk, 0 scratch rows
      receive output[slice 0 chunk 0] from 0
      wait_receive 1 from 0
      send output[slice 0 chunk 0] to 2
    rank 2 of 3: 1 slice x 1 chunk, 0 scratch rows
      receive output[slice 0 chunk 0] from 1)";
  EXPECT_EQ(reason(text, kBroadcast), "");
  // Whether the message is there already is the scheduler's choice: either way it is refused.
  EXPECT_NE(reason(replaced(text, "wait_receive 1 from 0", ""), kBroadcast), "");
  expect_reason(replaced(text, "wait_receive 1 from 0", "wait_receive 2 from 0"),
                "waits for 2 messages, but only 1 were posted from rank 0 before it", kBroadcast);
}

// Rank 1 lends its output for rank 0's answer to what rank 0 itself read from there.
TEST(Verify, AnAnswerMayOverwriteWhatItAnswers) {
  EXPECT_EQ(reason(kGather), "");
  // Not so when it is no answer: rank 0 sends something before it has taken the input.
  expect_reason(
      R"(
    rank 0 of 2: 1 slice x 1 chunk, 1 scratch row
      output[slice 0 chunk 0] = input[slice 0 chunk 0]
      send output[slice 0 chunk 0] to 1
      scratch[row 0 slice 0 chunk 0] = from 1
    rank 1 of 2: 1 slice x 1 chunk, 0 scratch rows
      send input[slice 0 chunk 0] to 0
      receive output[slice 0 chunk 0] from 0)",
      "rank 1, step 1 (receive): output[slice 0 chunk 0] may be written by rank 0 while rank 0 may still be reading "
      "input[slice 0 chunk 0] (step 0, send)",
      kAnyOrder);
}

// A transport that buffers gives memory back early, so a loan's return must not be taken for news of the peer.
TEST(Verify, TheReturnOfALoanDoesNotOrderOtherAccesses) {
  // Rank 1 reads row 0 of its scratch before rank 2's message may overwrite it only if wait_send told rank 0 of that.
  expect_reason(
      R"(
    rank 0 of 3: 1 slice x 1 chunk, 0 scratch rows
      output[slice 0 chunk 0] = input[slice 0 chunk 0]
      send output[slice 0 chunk 0] to 1
      wait_send 1 to 1
      send output[slice 0 chunk 0] to 2
    rank 1 of 3: 1 slice x 1 chunk, 1 scratch row
      scratch[row 0 slice 0 chunk 0] = input[slice 0 chunk 0]
      receive scratch[row 0 slice 0 chunk 0] from 2
      scratch[row 0 slice 0 chunk 0] = scratch[row 0 slice 0 chunk 0] + from 0
      output[slice 0 chunk 0] = input[slice 0 chunk 0]
    rank 2 of 3: 1 slice x 1 chunk, 1 scratch row
      scratch[row 0 slice 0 chunk 0] = from 0
      output[slice 0 chunk 0] = input[slice 0 chunk 0]
      send scratch[row 0 slice 0 chunk 0] to 1)",
      "rank 1, step 1 (receive): scratch[row 0 slice 0 chunk 0] may be written by rank 2 while this rank may still be",
      kAnyOrder);
}

TEST(Verify, RefusesWhatWasNeverWrittenOrIsOverwritten) {
  expect_reason(replaced(kGather, "finish(input", "finish(output"),
                "output[slice 0 chunk 0] is read before anything was written there");
  expect_reason(R"(
    rank 0 of 1: 1 slice x 1 chunk, 0 scratch rows
      output[slice 0 chunk 0] = finish(input[slice 0 chunk 0])
      output[slice 0 chunk 0] = finish(input[slice 0 chunk 0]))",
                "in place it is the output's memory");
  expect_reason(R"(
    rank 0 of 1: 2 slices x 1 chunk, 1 scratch row
      scratch[row 0 slice 0 chunk 0] = input[slice 0 chunk 0]
      output[slice 1 chunk 0] = finish(scratch[row 0 slice 1 chunk 0]))",
                "scratch[row 0 slice 1 chunk 0] is read but holds slice 0");
}

TEST(Verify, RefusesWhatIsOutOfRange) {
  expect_reason(replaced(kGather, "to 1", "to 2"), "rank 0, step 1 (send): rank 2 does not exist");
  expect_reason(replaced(kGather, "to 1", "to 0"), "a rank sends no messages to itself");
  expect_reason(replaced(kGather, "send output[slice 0", "send output[slice 1"),
                "output[slice 1 chunk 0] does not exist");
  expect_reason(replaced(kGather, "receive output", "receive input"), "the caller's input is never written");
  expect_reason(replaced(kGather, "rank 1 of 2: 1 slice", "rank 1 of 2: 2 slices"),
                "rank 1 cuts messages otherwise than rank 0");
  std::vector<Schedule> schedules = parse_schedules(kGather);
  schedules[0].steps[0].part_count = 3;
  EXPECT_NE(verify(schedules, Layout::of(2), {}).reason.find("outside the table"), std::string::npos);
  schedules[0].steps[0].part_count = 1;
  schedules[0].sources[0].joins = 1;
  EXPECT_NE(verify(schedules, Layout::of(2), {}).reason.find("joins more partial results than there are"),
            std::string::npos);
  EXPECT_EQ(verify(schedules, Layout::of(3), {}).reason, "there are 2 schedules for 3 ranks");
}

const Goal kRows{Collective::gather, 0, Order::any};

// Rank 2's row goes to rank 1, and with that of rank 1 to rank 0.
constexpr std::string_view kPassedOn = R"(
  rank 0 of 3: 3 exact slices x 1 chunk, 0 scratch rows
    receive output[slice 1, 2 chunk 0] from 1
    output[slice 0 chunk 0] = input[slice 0 chunk 0]
  rank 1 of 3: 3 exact slices x 1 chunk, 3 scratch rows
    receive relay[row 1 slice 2 chunk 0] from 2
    relay[row 0 slice 1 chunk 0] = input[slice 1 chunk 0]
    wait_receive 1 from 2
    send relay[row 0 slice 1, 2 chunk 0] to 0
  rank 2 of 3: 3 exact slices x 1 chunk, 0 scratch rows
    send input[slice 2 chunk 0] to 1
)";

TEST(Verify, MessagesMayBeOfSeveralRowsSideBySide) {
  EXPECT_EQ(reason(kPassedOn, kRows), "");
  const auto refused = [](std::string_view what, std::string_view with, std::string_view why) {
    expect_reason(replaced(kPassedOn, what, with), why, kRows);
  };
  // Too long, too short, shifted; at either end.
  refused("send relay[row 0 slice 1, 2 chunk", "send relay[row 0 slice 1, 2, 0 chunk", "before anything was written");
  refused("send relay[row 0 slice 1, 2 chunk", "send relay[row 0 slice 1, 2, 0, 1 chunk",
          "it has 4 rows from relay[row 0 slice 1 chunk 0] on, and there are only 3");
  refused(
      "send relay[row 0 slice 1, 2 chunk", "send relay[row 0 slice 1 chunk",
      "rank 0, step 0 (receive): expects 2 rows, output[slice 1, 2 chunk 0], but rank 1 sends 1, relay[row 0 slice 1 "
      "chunk 0]");
  refused("send relay[row 0 slice 1, 2 chunk", "send relay[row 1 slice 1, 2 chunk",
          "relay[row 1 slice 1 chunk 0] is read but holds slice 2");
  refused("send relay[row 0 slice 1, 2 chunk", "send relay[row 0 slice 1, 1 chunk",
          "relay[row 1 slice 1 chunk 0] is read but holds slice 2");
  refused("receive output[slice 1, 2 chunk", "receive output[slice 0-2 chunk", "expects 3 rows");
  refused("receive output[slice 1, 2 chunk", "receive output[slice 0, 1 chunk",
          "expects output[slice 0 chunk 0] but rank 1 sends relay[row 0 slice 1 chunk 0]");
  refused("receive output[slice 1, 2 chunk", "receive output[slice 1 chunk", "expects 1 rows");
  refused("receive output[slice 1, 2 chunk", "receive output[slice 1, 2, 3 chunk",
          "output[slice 3 chunk 0] does not exist");
  // Not side by side.
  refused("receive output[slice 1, 2 chunk", "receive output[slice 2, 1 chunk",
          "rank 0, step 0 (receive): output[slice 1 chunk 0] does not lie behind output[slice 2 chunk 0]");
  refused("receive output[slice 1, 2 chunk", "receive output[slice 0, 2 chunk", "does not lie behind");
  // Each row is lent.
  refused("    wait_receive 1 from 2\n", "", "relay[row 1 slice 2 chunk 0] is read before anything was written there");
  refused("    output[slice 0 chunk 0] = input[slice 0 chunk 0]",
          "    output[slice 2 chunk 0] = input[slice 0 chunk 0]", "are different parts of the message");
  refused("slice 1, 2 chunk 0] to 0",
          "slice 1, 2 chunk 0] to 0\n relay[row 1 slice 1 chunk 0] = input[slice 1 chunk 0]",
          "may still be reading relay[row 1 slice 2 chunk 0]");
  std::vector<Schedule> schedules = parse_schedules(kPassedOn);
  schedules[0].steps[0].part_count = 2;
  EXPECT_NE(verify(schedules, Layout::of(3), kRows).reason.find("its further rows are outside the table"),
            std::string::npos);
}

TEST(Verify, RefusesMessagesOfSeveralRowsWhereTheyHaveNoLength) {
  constexpr std::string_view kLength = "a message of several rows needs rows of one length";
  expect_reason(R"(
    rank 0 of 2: 2 slices x 1 chunk, 0 scratch rows
      send input[slice 0, 1 chunk 0] to 1
    rank 1 of 2: 2 slices x 1 chunk, 0 scratch rows
      receive output[slice 0, 1 chunk 0] from 0)",
                kLength, kBroadcast);
  expect_reason(R"(
    rank 0 of 2: 2 exact slices x 2 chunks, 0 scratch rows
      send input[slice 0, 1 chunk 0] to 1
    rank 1 of 2: 2 exact slices x 2 chunks, 0 scratch rows
      receive output[slice 0 chunk 0] from 0)",
                kLength, {Collective::scatter, 0, Order::any});
  expect_reason(R"(
    rank 0 of 2: 2 exact slices x 1 chunk, 0 scratch rows
      send input[slice 0, 1 chunk 0] to 1
      output[slice 0 chunk 0] = finish(input[slice 0 chunk 0] + from 1)
    rank 1 of 2: 2 exact slices x 1 chunk, 0 scratch rows
      send input[slice 0 chunk 0] to 0
      output[slice 1 chunk 0] = finish(from 0 + input[slice 1 chunk 0]))",
                kLength, {Collective::reduce_scatter, 0, Order::any});
  expect_reason(R"(
    rank 0 of 2: 2 exact slices x 1 chunk, 0 scratch rows
      send input[slice 0, 1 chunk 0] to 1
    rank 1 of 2: 2 exact slices x 1 chunk, 0 scratch rows
      output[slice 1 chunk 0] = from 0)",
                "rank 1, step 0 (reduce): expects one region but rank 0 sends input[slice 0, 1 chunk 0]",
                {Collective::scatter, 0, Order::any});
}

// The rows of a buffer of all_to_all that come from each rank lie n slices apart, and side by side.
TEST(Verify, RowsThatLieSideBySideNeedNotBeNeighboursInTheMessage) {
  constexpr std::string_view kBoth = R"(
    rank 0 of 2: 4 exact slices x 1 chunk, 0 scratch rows
      send input[slice 0, 1 chunk 0] to 1
      receive output[slice 0, 2 chunk 0] from 1
    rank 1 of 2: 4 exact slices x 1 chunk, 2 scratch rows
      receive relay[row 0 slice 0, 1 chunk 0] from 0
      output[slice 3 chunk 0] = input[slice 3 chunk 0]
      wait_receive 1 from 0
      output[slice 1 chunk 0] = relay[row 1 slice 1 chunk 0]
      relay[row 1 slice 2 chunk 0] = input[slice 2 chunk 0]
      send relay[row 0 slice 0, 2 chunk 0] to 0)";
  const Goal goal{Collective::all_to_all, 0, Order::any};
  EXPECT_EQ(reason(kBoth, goal), "");
  expect_reason(replaced(kBoth, "output[slice 0, 2 chunk 0] from", "output[slice 0, 1 chunk 0] from"),
                "output[slice 1 chunk 0] does not exist", goal);
}

TEST(Verify, ABarrierNeedsWordFromEveryRank) {
  const Example barrier = dissemination(5);
  EXPECT_EQ(verify(barrier.schedules, barrier.layout, barrier.goal).rounds, 3);
  expect_reason(R"(
    rank 0 of 2: 1 slice x 1 chunk, 0 scratch rows
      send input[slice 0 chunk 0] to 1
    rank 1 of 2: 1 slice x 1 chunk, 1 scratch row
      scratch[row 0 slice 0 chunk 0] = from 0)",
                "rank 0 can leave the barrier before every rank has entered it", kBarrier);
}

TEST(Verify, ReduceScatterAndAllGatherKnowWhoseSliceIsWhose) {
  Example scatter = direct_reduce_scatter(3);
  scatter.schedules[1].steps.back().region.slice = 2;
  EXPECT_NE(verify(scatter.schedules, scatter.layout, scatter.goal).reason.find("the output of reduce_scatter"),
            std::string::npos);
  Example gather = ring_all_gather(3);
  gather.schedules[1].sources[0].region.slice = 2;
  EXPECT_NE(verify(gather.schedules, gather.layout, gather.goal).reason.find("the input of all_gather"),
            std::string::npos);
}

TEST(Verify, OnlyTheRootHasTheInputOfABroadcast) {
  Example broadcast = chain_broadcast(3, 1, 1);
  EXPECT_TRUE(verify(broadcast.schedules, broadcast.layout, broadcast.goal).holds);
  broadcast.schedules[2].steps.back().region.space = Space::input;
  EXPECT_NE(verify(broadcast.schedules, broadcast.layout, broadcast.goal).reason.find("is the root's alone"),
            std::string::npos);
}

}  // namespace
}  // namespace tutti::internal
