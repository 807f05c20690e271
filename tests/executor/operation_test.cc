#include "executor/operation.h"

#include <gtest/gtest.h>

namespace tutti::internal {
namespace {

// As a call of device memory whose input is still on its way.
TEST(Operation, ThatHasNotBegunWaitsForNobody) { EXPECT_EQ(Operation().waiting_for().rank, -1); }

}  // namespace
}  // namespace tutti::internal
