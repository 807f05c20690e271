// libtutti_nccl: programs that are written to nccl.h, with memory of malloc(), on a machine without a GPU.
#include <gtest/gtest.h>

#include "tools/shell.h"

namespace tutti::internal {
namespace {

using tools::Result;
using tools::shell;

#ifdef NCCL_RANKS

// With times that let a test that fails end soon.
Result run(const std::string& command) { return shell("TUTTI_TIMEOUT=30 TUTTI_JOIN_TIMEOUT=30 " + command); }
void expect_success(const Result& result) { EXPECT_EQ(result.status, 0) << result.out << result.err; }

class Nccl : public testing::TestWithParam<int> {
 protected:
  void expect(const std::string& name) {
    for (const std::string wire : {"shm", "tcp"})
      expect_success(run("TUTTI_TRANSPORT=" + wire + " " NCCL_RANKS " " + name + " " + std::to_string(GetParam())));
  }
};
INSTANTIATE_TEST_SUITE_P(Ranks, Nccl, testing::Values(1, 2, 4),
                         [](const auto& it) { return std::to_string(it.param); });

TEST_P(Nccl, EveryCollectiveGivesWhatAPlainLoopGives) { expect("all_collectives"); }
TEST_P(Nccl, EachRankScalesItsInput) { expect("premultiplied_sums"); }
TEST_P(Nccl, SendsAndGroupsDoWhatTheySay) { expect("sends_and_groups"); }
TEST_P(Nccl, CommunicatorsAreSplit) { expect("parts"); }
TEST_P(Nccl, MemoryIsAllocatedAndRegistered) { expect("memories"); }
TEST_P(Nccl, WrongCallsAreRefusedInWords) { expect("refuse_wrong_calls"); }
TEST_P(Nccl, WhatCannotBeIsRefusedInWords) { expect("refuse_what_cannot_be"); }
TEST_P(Nccl, KernelsAreRefusedInWords) { expect("refuse_kernels"); }
TEST_P(Nccl, AFinalizedCommunicatorIsRefused) { expect("refuse_what_is_finalized"); }
TEST_P(Nccl, AllRanksHearOfAMismatch) { expect("all_hear_of_a_mismatch"); }
TEST_P(Nccl, AllRanksHearOfAnAbort) { expect("all_hear_of_an_abort"); }
TEST_P(Nccl, AllRanksHearOfARevocation) { expect("all_hear_of_a_revocation"); }

TEST(Nccl, WrongJoinsAreRefusedInWords) { expect_success(run(NCCL_RANKS " refuse_wrong_joins")); }

class NcclInOneThread : public testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Wire, NcclInOneThread, testing::Values("shm", "tcp"), [](const auto& it) { return it.param; });

TEST_P(NcclInOneThread, AllRanksOfAProgramMakeTheirCallsInGroups) {
  for (const std::string name :
       {"every_type", "types_without_a_loop", "every_collective", "messages_and_parts", "again_and_again"}) {
    SCOPED_TRACE(name);
    expect_success(run("TUTTI_TRANSPORT=" + GetParam() + " " NCCL_ONE_THREAD " " + name));
  }
}

// Linked to NCCL itself, which without a driver can do nothing: so the results are ours.
TEST(Nccl, ServesProgramsThatAreLinkedToNccl) {
#ifdef NCCL_OWN_RANKS
  expect_success(run("LD_PRELOAD=" TUTTI_NCCL_LIBRARY " " NCCL_OWN_RANKS " all_collectives 2"));
  expect_success(run("folder=$(mktemp -d) && ln -s " TUTTI_NCCL_LIBRARY
                     " $folder/libnccl.so.2 && LD_LIBRARY_PATH=$folder " NCCL_OWN_RANKS
                     " refuse_what_cannot_be 2; status=$?; rm -r $folder; exit $status"));
#else
  GTEST_SKIP() << "NCCL's own library is not here, or this build has no shared libraries";
#endif
}

#else

TEST(Nccl, EveryCollectiveGivesWhatAPlainLoopGives) {
  GTEST_SKIP() << "libtutti_nccl was not built: CMake says why (there is no nccl.h?)";
}

#endif

}  // namespace
}  // namespace tutti::internal
