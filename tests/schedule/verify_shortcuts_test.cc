// What the verifier takes for a shortcut that may be taken or not, and what it refuses.
#include <gtest/gtest.h>

#include "schedule/text.h"
#include "schedule/verify.h"

namespace tutti::internal {
namespace {

// Why these schedules are refused where rank 0 may take these shortcuts; empty when they are not.
std::string reason(std::string_view text, std::vector<Shortcut> of_rank_0) {
  const std::vector<Schedule> schedules = parse_schedules(text);
  const Layout layout = Layout::of(static_cast<int>(schedules.size()));
  EXPECT_EQ(verify(schedules, layout, {}).reason, "") << "without shortcuts";
  std::vector<std::vector<Shortcut>> shortcuts(schedules.size());
  shortcuts[0] = std::move(of_rank_0);
  return verify(schedules, layout, {}, shortcuts).reason;
}

void expect_reason(std::string_view text, std::vector<Shortcut> of_rank_0, std::string_view part) {
  const std::string found = reason(text, std::move(of_rank_0));
  EXPECT_NE(found.find(part), std::string::npos) << "found: " << found;
}

constexpr std::string_view kStar = R"(
  rank 0 of 3: 1 slice x 1 chunk, 0 scratch rows
    output[slice 0 chunk 0] = finish((input[slice 0 chunk 0] + from 1) + from 2)
    send output[slice 0 chunk 0] to 1
    send output[slice 0 chunk 0] to 2
  rank 1 of 3: 1 slice x 1 chunk, 0 scratch rows
    send input[slice 0 chunk 0] to 0
    receive output[slice 0 chunk 0] from 0
  rank 2 of 3: 1 slice x 1 chunk, 0 scratch rows
    send input[slice 0 chunk 0] to 0
    receive output[slice 0 chunk 0] from 0
)";

// The reduce reads the very memory of the peers that it stores to.
TEST(VerifyShortcuts, AReduceMayStoreForAllThatItsResultIsSentTo) {
  EXPECT_EQ(reason(kStar, {{0, 1}}), "");
  EXPECT_EQ(reason(kStar, {{0, 1}, {0, 2}}), "");
}

TEST(VerifyShortcuts, MustNameStepsThatThereAre) {
  expect_reason(kStar, {{0, 3}}, "there are no such steps");
  expect_reason(kStar, {{1, 2}}, "the first is no reduce");
  expect_reason(kStar, {{0, 1}, {0, 1}}, "another shortcut does this step too");
}

TEST(VerifyShortcuts, WhatIsStoredMustBeWhatIsSent) {
  constexpr std::string_view kTwoResults = R"(
    rank 0 of 2: 1 slice x 1 chunk, 2 scratch rows
      scratch[row 0 slice 0 chunk 0] = input[slice 0 chunk 0]
      scratch[row 1 slice 0 chunk 0] = scratch[row 0 slice 0 chunk 0] + from 1
      send scratch[row 0 slice 0 chunk 0] to 1
      output[slice 0 chunk 0] = finish(scratch[row 1 slice 0 chunk 0])
    rank 1 of 2: 1 slice x 1 chunk, 1 scratch row
      send input[slice 0 chunk 0] to 0
      receive scratch[row 0 slice 0 chunk 0] from 0
      wait_receive 1 from 0
      wait_send 1 to 0
      output[slice 0 chunk 0] = finish(scratch[row 0 slice 0 chunk 0] + input[slice 0 chunk 0])
  )";
  expect_reason(kTwoResults, {{1, 2}}, "step 1 may do it, but that makes (0 + 1), and 0 is sent");
  EXPECT_EQ(reason(kTwoResults, {{0, 2}}), "") << "whatever stands between";
  expect_reason(kTwoResults, {{1, 3}}, "step 2 would be left out");
}

TEST(VerifyShortcuts, MessagesToAPeerMustKeepTheirOrder) {
  constexpr std::string_view kTwice = R"(
    rank 0 of 2: 1 slice x 1 chunk, 0 scratch rows
      output[slice 0 chunk 0] = finish(input[slice 0 chunk 0] + from 1)
      send output[slice 0 chunk 0] to 1
      send output[slice 0 chunk 0] to 1
    rank 1 of 2: 1 slice x 1 chunk, 0 scratch rows
      send input[slice 0 chunk 0] to 0
      receive output[slice 0 chunk 0] from 0
      wait_receive 1 from 0
      receive output[slice 0 chunk 0] from 0
  )";
  EXPECT_EQ(reason(kTwice, {{0, 1}}), "");
  expect_reason(kTwice, {{0, 2}}, "step 1 sends to the same peer");
  expect_reason(kTwice, {{0, 1}, {0, 2}}, "step 1 sends to the same peer");
}

// Rank 2 still reads the memory of rank 1 that the store goes to, until it has told rank 0.
TEST(VerifyShortcuts, AnEarlyStoreMustNotRace) {
  constexpr std::string_view kNote = R"(
    rank 0 of 3: 1 slice x 1 chunk, 1 scratch row
      output[slice 0 chunk 0] = finish((input[slice 0 chunk 0] + from 1) + from 2)
      scratch[row 0 slice 0 chunk 0] = from 2
      send output[slice 0 chunk 0] to 1
      send output[slice 0 chunk 0] to 2
    rank 1 of 3: 1 slice x 1 chunk, 0 scratch rows
      send input[slice 0 chunk 0] to 0
      send input[slice 0 chunk 0] to 2
      receive output[slice 0 chunk 0] from 0
    rank 2 of 3: 1 slice x 1 chunk, 1 scratch row
      send input[slice 0 chunk 0] to 0
      scratch[row 0 slice 0 chunk 0] = from 1
      send input[slice 0 chunk 0] to 0
      wait_send 2 to 0
      receive output[slice 0 chunk 0] from 0
  )";
  expect_reason(kNote, {{0, 2}}, "may be written by rank 0 while rank 2 may still be reading");
}

constexpr std::string_view kFinishedLater = R"(
  rank 0 of 2: 1 slice x 1 chunk, 2 scratch rows
    send input[slice 0 chunk 0] to 1
    scratch[row 0 slice 0 chunk 0] = input[slice 0 chunk 0] + from 1
    wait_send 1 to 1
    output[slice 0 chunk 0] = finish(scratch[row 0 slice 0 chunk 0])
  rank 1 of 2: 1 slice x 1 chunk, 1 scratch row
    send input[slice 0 chunk 0] to 0
    scratch[row 0 slice 0 chunk 0] = from 0 + input[slice 0 chunk 0]
    wait_send 1 to 0
    output[slice 0 chunk 0] = finish(scratch[row 0 slice 0 chunk 0])
)";

TEST(VerifyShortcuts, AReduceMayFinishAtOnceWhatOnlyWaitsStandBefore) {
  EXPECT_EQ(reason(kFinishedLater, {{1, 3}}), "");
  expect_reason(kFinishedLater, {{1, 2}}, "it finishes nothing");
}

TEST(VerifyShortcuts, WhatAJumpLeavesUnwrittenMustNotBeRead) {
  constexpr std::string_view kSentOn = R"(
    rank 0 of 2: 1 slice x 1 chunk, 1 scratch row
      send input[slice 0 chunk 0] to 1
      scratch[row 0 slice 0 chunk 0] = input[slice 0 chunk 0] + from 1
      wait_send 1 to 1
      output[slice 0 chunk 0] = finish(scratch[row 0 slice 0 chunk 0])
      send scratch[row 0 slice 0 chunk 0] to 1
    rank 1 of 2: 1 slice x 1 chunk, 2 scratch rows
      send input[slice 0 chunk 0] to 0
      scratch[row 1 slice 0 chunk 0] = from 0
      receive scratch[row 0 slice 0 chunk 0] from 0
      wait_receive 1 from 0
      wait_send 1 to 0
      output[slice 0 chunk 0] = finish(scratch[row 0 slice 0 chunk 0])
  )";
  expect_reason(kSentOn, {{1, 3}}, "is read before anything was written there");
}

TEST(VerifyShortcuts, AJumpMustFinishWhatItsReduceMakes) {
  constexpr std::string_view kOther = R"(
    rank 0 of 2: 1 slice x 1 chunk, 2 scratch rows
      scratch[row 0 slice 0 chunk 0] = input[slice 0 chunk 0] + from 1
      scratch[row 1 slice 0 chunk 0] = input[slice 0 chunk 0]
      output[slice 0 chunk 0] = finish(scratch[row 0 slice 0 chunk 0])
      send output[slice 0 chunk 0] to 1
    rank 1 of 2: 1 slice x 1 chunk, 0 scratch rows
      send input[slice 0 chunk 0] to 0
      receive output[slice 0 chunk 0] from 0
  )";
  expect_reason(kOther, {{1, 2}}, "it finishes something else");
  expect_reason(kOther, {{1, 2}, {2, 3}}, "that would do the work of step 3");
}

}  // namespace
}  // namespace tutti::internal
