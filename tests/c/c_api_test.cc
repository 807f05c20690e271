// The API for C: jobs of a program in C (program.c), and numbers that are NCCL's.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tools/shell.h"
#include "tutti/tutti.h"

namespace tutti::internal {
namespace {

using testing::HasSubstr;
using tools::Result;
using tools::shell;

void expect_success(const Result& result) { EXPECT_EQ(result.status, 0) << result.out << result.err; }
void expect_case(const std::string& name) { expect_success(shell(C_PROGRAM " " + name)); }

class CApiOverEveryWire : public testing::TestWithParam<std::string> {
 protected:
  void expect(const std::string& name) { expect_case(name + " " + GetParam()); }
};
INSTANTIATE_TEST_SUITE_P(Wire, CApiOverEveryWire, testing::Values("shm", "tcp"),
                         [](const auto& it) { return it.param; });

TEST_P(CApiOverEveryWire, EveryCollectiveGivesWhatAPlainLoopGives) { expect("all_collectives"); }
TEST_P(CApiOverEveryWire, EveryTypeIsWhatItsNumberSays) { expect("all_types"); }
TEST_P(CApiOverEveryWire, StartedCallsEndRight) { expect("started_calls"); }
TEST_P(CApiOverEveryWire, StartedCallsAreToldOfWhenTheyAreOver) { expect("works_are_told_of"); }
TEST_P(CApiOverEveryWire, StartedCallsEndByTheTimeoutOfTheirCommunicator) { expect("works_time_out"); }
TEST_P(CApiOverEveryWire, StartedCallsEndByTheirOwnTimeout) { expect("works_time_out_by_their_own_timeout"); }
TEST_P(CApiOverEveryWire, SomeRanksMakeACommunicatorAlone) { expect("groups_of_some_ranks"); }
TEST_P(CApiOverEveryWire, AGroupOfSomeRanksBeginsAsItsCommunicator) { expect("groups_begin_as_their_communicator"); }
TEST_P(CApiOverEveryWire, ScansCombineTheRanksBefore) { expect("scans"); }
TEST_P(CApiOverEveryWire, LaterCallsUseTheAlgorithmAndTheOrderThatWereSet) { expect("algorithms_and_orders"); }
TEST_P(CApiOverEveryWire, OtherOrdersAreAMismatchThatNamesTheRank) { expect("other_orders_are_a_mismatch"); }
TEST_P(CApiOverEveryWire, TheTablesChoiceIsTold) { expect("choices_are_told"); }
TEST_P(CApiOverEveryWire, SendsAndGroupsDoWhatTheySay) { expect("sends_and_groups"); }
TEST_P(CApiOverEveryWire, OneThreadJoinsAllRanksInAGroup) { expect("one_thread_has_all_ranks"); }
TEST_P(CApiOverEveryWire, TwoProcessesJoinTwoRanksEachInAGroup) { expect("two_processes_have_two_ranks_each"); }
TEST_P(CApiOverEveryWire, JoinsOfAGroupComeBeforeItsCalls) { expect("joins_and_calls_in_one_group"); }
TEST_P(CApiOverEveryWire, OneThreadSplitsAllRanksInAGroup) { expect("one_thread_splits_all_ranks"); }
TEST_P(CApiOverEveryWire, CommunicatorsAreSplitAndMemoryIsShared) { expect("parts_and_memory"); }
TEST_P(CApiOverEveryWire, WrongNumbersAreRefusedBeforeTheCall) { expect("refuse_wrong_numbers"); }
TEST_P(CApiOverEveryWire, EveryRankHearsOfAMismatch) { expect("both_hear_of_a_mismatch"); }
TEST_P(CApiOverEveryWire, AnAbortReachesAllRanks) { expect("an_abort_reaches_all"); }
TEST_P(CApiOverEveryWire, ALostRankIsToldWithoutACall) { expect("a_lost_rank_is_told_without_a_call"); }
TEST_P(CApiOverEveryWire, AForkedChildIsRefused) { expect("a_forked_child_is_refused"); }
TEST_P(CApiOverEveryWire, AFinalizedCommunicatorIsRefused) { expect("a_finalized_communicator_is_refused"); }

TEST_P(CApiOverEveryWire, LeavingWaitsForNobodyWhoIsLate) { expect("leaving_waits_for_nobody"); }
TEST_P(CApiOverEveryWire, AJobHasFiftyGroups) { expect("fifty_groups"); }

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // which need address space themselves
TEST(CApi, AJobHasFiftyGroupsInEightGibibytesOfAddressSpace) {
  expect_success(shell("ulimit -v 8388608; " C_PROGRAM " fifty_groups shm"));
}

TEST(CApi, TooLittleAddressSpaceIsSaidInWords) {
  const Result result = shell("ulimit -v 200000; " C_PROGRAM " all_types shm");
  EXPECT_EQ(result.status, 1);
  EXPECT_THAT(result.err, HasSubstr("cannot reserve address space (is there a limit on it? see ulimit -v)"));
}
#endif

TEST(CApi, AProcessMayHaveTwoIdsAtATime) { expect_case("join_by_two_ids"); }
TEST(CApi, RanksMeetThroughTheCallersStore) { expect_case("join_by_store"); }
TEST(CApi, AStoreThatAddsServesOneJoinAfterAnother) { expect_case("join_by_store_that_adds"); }
TEST(CApi, KeysOfAnEarlierJoinAreSuspected) { expect_case("join_by_store_with_stale_keys"); }
TEST(CApi, AConfigComesBeforeTheEnvironment) { expect_case("join_by_environment_and_config"); }
TEST(CApi, AWrongIdIsRefusedInWords) { expect_case("refuse_wrong_ids"); }
TEST(CApi, AWrongConfigIsRefusedInWords) { expect_case("refuse_wrong_configs"); }
TEST(CApi, AGroupWhoseJoinsFailLeavesNothing) { expect_case("refuse_wrong_groups"); }
TEST(CApi, NullIsRefusedInWords) { expect_case("refuse_nulls"); }

TEST(CApi, RanksMeetAsTheirLauncherSays) {
  for (const std::string transport : {"shm", "tcp"}) {
    const Result result = shell("TUTTI_TRANSPORT=" + transport + " $TUTTI run -n 3 " C_PROGRAM " environment");
    expect_success(result);
    EXPECT_THAT(result.out, HasSubstr("rank 2 of 3 is done\n"));
  }
}

TEST(CApi, AnIdIsMadeWhereTheEnvironmentSays) {
  expect_success(shell("TUTTI_INTERFACE=127.0.0.1 " C_PROGRAM " all_types tcp"));
  const Result result = shell("TUTTI_INTERFACE=nowhere " C_PROGRAM " all_types tcp");
  EXPECT_EQ(result.status, 1);
  EXPECT_THAT(result.err, HasSubstr("no network interface 'nowhere'"));
}

// In a network of its own that has no interface that is up, ranks meet at a local socket.
TEST(CApi, RanksMeetWithoutAnyNetwork) {
  if (shell("unshare -rn true").status != 0) GTEST_SKIP() << "this machine does not let us make a network namespace";
  expect_success(shell("unshare -rn " C_PROGRAM " all_collectives shm"));
}

}  // namespace
}  // namespace tutti::internal
