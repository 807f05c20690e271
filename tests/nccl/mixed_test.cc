// NCCL's functions beside other threads, and beside tutti's own.
#include <gtest/gtest.h>
#include <nccl.h>

#include <atomic>
#include <chrono>
#include <string>
#include <thread>

#include "nccl/communicator.h"
#include "tutti/tutti.h"

namespace tutti::nccl {
namespace {

// A watchdog's thread aborts, and so frees, the communicator of a call that is under way.
TEST(NcclBesideOthers, AnAbortLetsTheCallsOfOtherThreadsEnd) {
  for (int round = 0; round < 6; ++round) {
    ncclUniqueId id;
    ASSERT_EQ(ncclGetUniqueId(&id), ncclSuccess);
    ncclComm_t comms[2] = {};
    ASSERT_EQ(ncclGroupStart(), ncclSuccess);
    for (int rank = 0; rank < 2; ++rank) ASSERT_EQ(ncclCommInitRank(&comms[rank], 2, id, rank), ncclSuccess);
    ASSERT_EQ(ncclGroupEnd(), ncclSuccess);
    ncclResult_t result = ncclSuccess;
    ncclComm_t half = nullptr;
    std::atomic<bool> has_returned = false;
    std::thread caller([&] {  // rank 1 never comes
      float one = 1, sum = 0;
      result = round % 3 == 0   ? ncclAllReduce(&one, &sum, 1, ncclFloat, ncclSum, comms[0], nullptr)
               : round % 3 == 1 ? ncclCommSplit(comms[0], 0, 0, &half, nullptr)
                                : ncclCommFinalize(comms[0]);
      has_returned = true;
    });
    // An abort before the call has begun would free what the call is to use. A little later the call waits.
    while (comms[0]->inside == 0 && !has_returned) std::this_thread::yield();
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    EXPECT_EQ(ncclCommAbort(comms[0]), ncclSuccess);
    caller.join();
    EXPECT_TRUE(result != ncclSuccess || round % 3 == 2) << round;
    EXPECT_EQ(half, nullptr);
    EXPECT_EQ(ncclCommAbort(comms[1]), ncclSuccess);
  }
}

TEST(NcclBesideOthers, AJoinInAGroupThatTuttiHasOpenedIsRefused) {
  for (const bool inner : {false, true}) {
    ncclUniqueId id;
    ASSERT_EQ(ncclGetUniqueId(&id), ncclSuccess);
    ncclComm_t comm = nullptr;
    ASSERT_EQ(tutti_group_start(), TUTTI_SUCCESS);
    if (inner) {
      ASSERT_EQ(ncclGroupStart(), ncclSuccess);
    }
    ncclResult_t result = ncclCommInitRank(&comm, 1, id, 0);
    if (inner) result = ncclGroupEnd();
    EXPECT_EQ(result, ncclInvalidUsage);
    EXPECT_NE(std::string(ncclGetLastError(nullptr)).find("that ncclGroupStart() has not opened"), std::string::npos)
        << ncclGetLastError(nullptr);
    EXPECT_EQ(comm, nullptr);
    EXPECT_EQ(tutti_group_end(), TUTTI_SUCCESS);
    EXPECT_EQ(comm, nullptr);
  }
}

}  // namespace
}  // namespace tutti::nccl
