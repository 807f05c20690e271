// The programs of examples/ do what they say.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tools/shell.h"

namespace tutti::internal::tools {
namespace {

using testing::HasSubstr;

Result run(int ranks, const std::string& example, const std::string& options = "") {
  return shell("$TUTTI run " + options + " -n " + std::to_string(ranks) + " " EXAMPLES + example);
}

void expect_lines(const Result& result, const std::vector<std::string>& lines) {
  EXPECT_EQ(result.status, 0) << result.err;
  EXPECT_EQ(result.err, "");
  for (const std::string& line : lines) EXPECT_THAT(result.out, HasSubstr(line + "\n"));
}

TEST(Examples, AsynchronousCallsAverageEveryLayer) {
  expect_lines(run(2, "asynchronous"), {"rank 0: gradients of layers 3 to 0: 3.25 2.25 1.25 0.25",
                                        "rank 1: gradients of layers 3 to 0: 3.25 2.25 1.25 0.25"});
}

TEST(Examples, SplitMakesRowsAndColumns) {
  expect_lines(run(4, "split"), {"rank 0: row 0 of 2 ranks has the sum 1, column 0 of 2 ranks has the sum 2",
                                 "rank 3: row 1 of 2 ranks has the sum 5, column 1 of 2 ranks has the sum 4"});
  expect_lines(run(3, "split"), {"rank 2: row 1 of 1 ranks has the sum 2, column 0 of 2 ranks has the sum 2"});
}

TEST(Examples, SymmetricMemoryHoldsInputAndOutput) {
  expect_lines(run(3, "symmetric_memory"), {"rank 0: the largest first element is 2, the largest last one 5",
                                            "rank 2: the largest first element is 2, the largest last one 5"});
}

TEST(Examples, RanksMeetThroughAFolder) {
  const Result result = shell("folder=$(mktemp -d); ranks=; for rank in 0 1 2; do " EXAMPLES
                              "own_store $rank 3 $folder & ranks=\"$ranks $!\"; done; "
                              "for rank in $ranks; do wait $rank || exit 1; done; rm -r $folder");
  expect_lines(result, {"rank 0 of 3 has got 42", "rank 1 of 3 has got 42", "rank 2 of 3 has got 42"});
}

TEST(Examples, AFolderThatCannotBeWrittenIsSaid) {
  const Result result = shell(EXAMPLES "own_store 1 2 /no/such/folder");
  EXPECT_EQ(result.status, 1);
  EXPECT_THAT(result.err, HasSubstr("cannot write /no/such/folder"));
}

TEST(Examples, AProgramInCGetsTheSameSum) {
  expect_lines(run(3, "c_api"), {"rank 0 of 3: the sum is 1.83333337, the largest is 4",
                                 "rank 2 of 3: the sum is 1.83333337, the largest is 4"});
}

TEST(Examples, ErrorsSayWhatStillWorks) {
  const Result result = run(3, "errors");
  expect_lines(result, {"rank 0: 3 ranks are still there", "rank 1: 3 ranks are still there"});
  EXPECT_THAT(result.out, HasSubstr("rank 1: invalid_argument: all_reduce: input and output overlap"));
  EXPECT_THAT(result.out, HasSubstr("rank 2: mismatch: rank 2: the ranks made different calls"));
}

TEST(Examples, RanksGoOnWithoutOneThatDied) {
  const Result result = run(4, "shrink", "--keep-going");
  EXPECT_EQ(result.status, 0) << result.err;
  const std::string said = "tutti run: rank 3 was killed by signal 9 (Killed)";  // the others may have ended by then
  EXPECT_THAT(result.err, testing::AnyOf(said + "; the others go on\n", said + "\n"));
  for (const std::string rank : {"rank 0", "rank 1", "rank 2"}) {
    EXPECT_THAT(result.out, HasSubstr(rank + ": " + rank + ": rank 3 was lost: its process died"));
    EXPECT_THAT(result.out, HasSubstr(rank + " of 3 has made all steps\n"));
  }
  EXPECT_EQ(run(4, "shrink").status, 1);
}

}  // namespace
}  // namespace tutti::internal::tools
