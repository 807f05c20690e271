#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tools/shell.h"

namespace tutti::internal::tools {
namespace {

using testing::HasSubstr;

TEST(FirstProgram, EveryRankPrintsTheSameSum) {
  const Result run = shell("$TUTTI run -n 3 " FIRST_PROGRAM);
  EXPECT_EQ(run.status, 0) << run.err;
  for (const char* line : {"rank 0 of 3: the sum is 1.83333337\n", "rank 1 of 3: the sum is 1.83333337\n",
                           "rank 2 of 3: the sum is 1.83333337\n"}) {
    EXPECT_THAT(run.out, HasSubstr(line));
  }
}

TEST(FirstProgram, WithoutALauncherItIsAlone) { EXPECT_EQ(shell(FIRST_PROGRAM).out, "rank 0 of 1: the sum is 1\n"); }

TEST(FirstProgram, SaysWhatIsWrongWithItsEnvironment) {
  const Result run = shell("TUTTI_RANK=0 TUTTI_SIZE=many " FIRST_PROGRAM);
  EXPECT_EQ(run.status, 1);
  EXPECT_THAT(run.err, HasSubstr("TUTTI_SIZE is 'many' but should be"));
}

}  // namespace
}  // namespace tutti::internal::tools
