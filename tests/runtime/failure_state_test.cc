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

TEST(FailureState, AnotherFailureGoesBeforeALoss) {
  FailureState state;
  state.lose({ErrorCode::peer_lost, 3, "rank 3 was lost"});
  EXPECT_TRUE(state.fail({ErrorCode::mismatch, 1, "calls differ"}));
  EXPECT_FALSE(state.fail_by_loss());
  EXPECT_EQ(state.failure()->code, ErrorCode::mismatch);
  EXPECT_EQ(state.reason()->code, ErrorCode::mismatch);
  state.lose({ErrorCode::peer_lost, 4, "rank 4 was lost"});
  EXPECT_TRUE(state.has_failed());
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
  state.note_thrown();
  EXPECT_FALSE(state.take_unheard());
}

}  // namespace
}  // namespace tutti::internal
