#include "runtime/failure_state.h"

#include <gtest/gtest.h>

namespace tutti::internal {
namespace {

TEST(FailureState, KeepsTheFirstFailure) {
  FailureState state;
  EXPECT_TRUE(state.is_well());
  EXPECT_FALSE(state.failure());
  EXPECT_TRUE(state.fail({ErrorCode::timeout, 2, "first"}));
  EXPECT_FALSE(state.fail({ErrorCode::aborted, 1, "second"}));
  EXPECT_FALSE(state.is_well());
  EXPECT_TRUE(state.has_failed());
  EXPECT_EQ(state.failure()->message, "first");
  EXPECT_EQ(state.failure()->code, ErrorCode::timeout);
  EXPECT_EQ(state.failure()->peer, 2);
}

TEST(FailureState, ALossFailsNothingUntilItIsTakenForTheFailure) {
  FailureState state;
  EXPECT_FALSE(state.fail_by_loss());
  state.lose({ErrorCode::peer_lost, 3, "rank 3 was lost"});
  state.lose({ErrorCode::peer_lost, 4, "rank 4 was lost"});
  EXPECT_FALSE(state.is_well());
  EXPECT_FALSE(state.has_failed());
  EXPECT_FALSE(state.failure());
  EXPECT_EQ(state.reason()->peer, 3);
  EXPECT_TRUE(state.fail_by_loss());
  EXPECT_FALSE(state.fail_by_loss());
  EXPECT_EQ(state.failure()->peer, 3);
}

// Of a loss and a verdict the one that was heard first counts, as on every other rank.
TEST(FailureState, WhatWasHeardFirstIsTheFailure) {
  FailureState lost_first;
  lost_first.lose({ErrorCode::peer_lost, 3, "rank 3 was lost"});
  EXPECT_TRUE(lost_first.fail({ErrorCode::mismatch, 1, "calls differ"}));
  EXPECT_FALSE(lost_first.fail_by_loss());
  EXPECT_EQ(lost_first.failure()->code, ErrorCode::peer_lost);
  FailureState failed_first;
  EXPECT_TRUE(failed_first.fail({ErrorCode::mismatch, 1, "calls differ"}));
  failed_first.lose({ErrorCode::peer_lost, 3, "rank 3 was lost"});
  EXPECT_EQ(failed_first.failure()->code, ErrorCode::mismatch);
  EXPECT_EQ(failed_first.reason()->code, ErrorCode::mismatch);
}

TEST(FailureState, AnAccusationStandsStillUntilTheVerdict) {
  FailureState state;
  EXPECT_TRUE(state.accuse({ErrorCode::timeout, 2, "this rank's own"}));
  EXPECT_FALSE(state.accuse({ErrorCode::timeout, 2, "again"}));
  EXPECT_FALSE(state.is_well() || state.goes_on() || state.has_failed());
  EXPECT_EQ(state.reason()->message, "this rank's own");
  EXPECT_FALSE(state.wait_for_verdict(std::chrono::milliseconds(1)));
  state.lose({ErrorCode::peer_lost, 3, "heard before the verdict"});
  EXPECT_FALSE(state.goes_on());
  EXPECT_TRUE(state.fail({ErrorCode::mismatch, 1, "another rank's"}));
  EXPECT_TRUE(state.wait_for_verdict(std::chrono::milliseconds(0)));
  EXPECT_EQ(state.failure()->code, ErrorCode::peer_lost);

  FailureState alone;
  EXPECT_FALSE(alone.fail_by_accusation());
  alone.accuse({ErrorCode::timeout, 2, "this rank's own"});
  EXPECT_TRUE(alone.fail_by_accusation());
  EXPECT_EQ(alone.failure()->message, "this rank's own");
}

TEST(FailureState, WhatNobodyHeardIsTakenOnce) {
  FailureState state;
  EXPECT_FALSE(state.take_unheard());
  state.fail({ErrorCode::aborted, -1, "why"});
  EXPECT_FALSE(state.take_unheard());
  state.note_unheard();
  EXPECT_EQ(state.take_unheard(), "why");
  EXPECT_FALSE(state.take_unheard());
}

TEST(FailureState, WhatACallHasThrownIsHeard) {
  FailureState state;
  state.fail({ErrorCode::aborted, -1, "why"});
  state.note_unheard();
  EXPECT_TRUE(state.claim_telling());
  EXPECT_FALSE(state.take_unheard());
}

}  // namespace
}  // namespace tutti::internal
