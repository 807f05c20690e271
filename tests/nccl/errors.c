/* What is refused, and who is told of what goes wrong. */
#define _POSIX_C_SOURCE 200809L
#include <string.h>
#include <time.h>

#include "ranks.h"

static void sleep_ms(int milliseconds) {
  struct timespec time;
  time.tv_sec = 0;
  time.tv_nsec = (long)milliseconds * 1000000;
  nanosleep(&time, NULL);
}

/* All of these leave the communicator usable. */
void refuse_wrong_calls(ncclComm_t world, int rank, int size) {
  double in[8] = {0}, out[8] = {0};
  int number = 0;
  ncclResult_t failure;
  ncclComm_t part = world;
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  (void)rank;
  FAILS(ncclAllReduce(in, out, 1, ncclNumTypes, ncclSum, world, NULL), ncclInvalidArgument, "dtype is 12");
  FAILS(ncclAllReduce(in, out, 1, ncclDouble, ncclNumOps, world, NULL), ncclInvalidArgument, "op is 5");
  FAILS(ncclAllReduce(NULL, out, 1, ncclDouble, ncclSum, world, NULL), ncclInvalidArgument, "null");
  FAILS(ncclAllReduce(in, out, 1, ncclDouble, ncclSum, NULL, NULL), ncclInvalidArgument, "comm is null");
  FAILS(ncclBroadcast(in, out, 1, ncclDouble, size, world, NULL), ncclInvalidArgument, "root");
  FAILS(ncclSend(in, 1, ncclDouble, -1, world, NULL), ncclInvalidArgument, "no rank");
  FAILS(ncclGroupEnd(), ncclInvalidArgument, "group_start");
  FAILS(ncclCommCount(NULL, &number), ncclInvalidArgument, "ncclCommCount");
  FAILS(ncclCommUserRank(world, NULL), ncclInvalidArgument, "ncclCommUserRank");
  FAILS(ncclCommCuDevice(NULL, &number), ncclInvalidArgument, "ncclCommCuDevice");
  FAILS(ncclCommGetAsyncError(NULL, &failure), ncclInvalidArgument, "comm is null");
  FAILS(ncclCommGetAsyncError(world, NULL), ncclInvalidArgument, "ncclCommGetAsyncError");
  FAILS(ncclCommSplit(world, -2, 0, &part, NULL), ncclInvalidArgument, "NCCL_SPLIT_NOCOLOR");
  FAILS(ncclCommSplit(NULL, 0, 0, &part, NULL), ncclInvalidArgument, "comm is null");
  EXPECT(part == NULL);
  FAILS(ncclCommSplit(world, 0, 0, NULL, NULL), ncclInvalidArgument, "ncclCommSplit");
  config.magic = 0;
  FAILS(ncclCommSplit(world, 0, 0, &part, &config), ncclInvalidArgument, "NCCL_CONFIG_INITIALIZER");

  /* An error of a group's call is the group's. What was right is done. */
  in[0] = 3;
  SUCCEEDS(ncclGroupStart());
  FAILS(ncclAllReduce(in, out, 1, ncclNumTypes, ncclSum, world, NULL), ncclInvalidArgument, "dtype is 12");
  SUCCEEDS(ncclAllReduce(in, out, 1, ncclDouble, ncclSum, world, NULL));
  FAILS(ncclGroupEnd(), ncclInvalidArgument, "dtype is 12");
  EXPECT(out[0] == 3.0 * size);
  SUCCEEDS(ncclGroupStart()); /* the next one begins anew */
  SUCCEEDS(ncclAllReduce(in, out, 1, ncclDouble, ncclMax, world, NULL));
  SUCCEEDS(ncclGroupEnd());
  EXPECT(out[0] == 3.0);
  SUCCEEDS(ncclCommGetAsyncError(world, &failure));
  EXPECT(failure == ncclSuccess);
}

void refuse_what_cannot_be(ncclComm_t world, int rank, int size) {
  ncclComm_t fewer = world;
  ncclSimInfo_t simulated = NCCL_SIM_INFO_INITIALIZER;
  int excluded[1] = {0}, version = 0, value = rank;
  FAILS(ncclCommShrink(world, excluded, 1, &fewer, NULL, NCCL_SHRINK_ABORT), ncclInvalidUsage, "ncclCommShrink: tutti");
  EXPECT(fewer == NULL);
  EXPECT(strstr(ncclGetLastError(world), "ncclCommSplit()") != NULL);
  SUCCEEDS(ncclGroupStart());
  SUCCEEDS(ncclAllReduce(&value, &value, 1, ncclInt, ncclMax, world, NULL));
  FAILS(ncclGroupSimulateEnd(&simulated), ncclInvalidUsage, "ncclGroupSimulateEnd: tutti");
  SUCCEEDS(ncclGroupEnd());
  EXPECT(value == size - 1);
  FAILS(ncclCommRevoke(world, 1), ncclInvalidArgument, "NCCL_REVOKE_DEFAULT");
  SUCCEEDS(ncclGetVersion(&version));
  EXPECT(version == NCCL_VERSION_CODE);
  FAILS(ncclGetVersion(NULL), ncclInvalidArgument, "ncclGetVersion");
  EXPECT(strcmp(ncclGetErrorString(ncclRemoteError), "remote error") == 0);
}

/* It may still be asked who it was. */
void refuse_what_is_finalized(ncclComm_t world, int rank, int size) {
  int number = -1, value = 1;
  ncclResult_t failure = ncclInternalError;
  SUCCEEDS(ncclAllReduce(&value, &value, 1, ncclInt, ncclSum, world, NULL));
  SUCCEEDS(ncclCommFinalize(world));
  SUCCEEDS(ncclCommGetAsyncError(world, &failure));
  EXPECT(failure == ncclSuccess);
  SUCCEEDS(ncclCommUserRank(world, &number));
  EXPECT(number == rank);
  SUCCEEDS(ncclCommCount(world, &number));
  EXPECT(number == size);
  FAILS(ncclAllReduce(&value, &value, 1, ncclInt, ncclSum, world, NULL), ncclInvalidUsage, "was finalized");
  FAILS(ncclCommFinalize(world), ncclInvalidUsage, "was finalized");
  FAILS(ncclCommFinalize(NULL), ncclInvalidArgument, "null");
  SUCCEEDS(ncclCommDestroy(NULL));
}

/* NCCL would hang, or worse. */
void all_hear_of_a_mismatch(ncclComm_t world, int rank, int size) {
  double values[4] = {0};
  ncclResult_t failure = ncclSuccess;
  const ncclResult_t result = ncclAllReduce(values, values, rank == size - 1 ? 3 : 4, ncclDouble, ncclSum, world, NULL);
  if (size == 1) return;
  EXPECT(result == ncclInvalidUsage);
  EXPECT(strstr(ncclGetLastError(world), "different calls") != NULL);
  SUCCEEDS(ncclCommGetAsyncError(world, &failure));
  EXPECT(failure == ncclInvalidUsage);
}

/* The last rank leaves without a word; the others wait for it. */
void all_hear_of_an_abort(ncclComm_t world, int rank, int size) {
  int value = 1;
  ncclResult_t failure = ncclSuccess;
  frees_world = rank == size - 1;
  if (frees_world) {
    sleep_ms(50);
    SUCCEEDS(ncclCommAbort(world));
    return;
  }
  FAILS(ncclAllReduce(&value, &value, 1, ncclInt, ncclSum, world, NULL), ncclRemoteError, "ncclCommAbort()");
  SUCCEEDS(ncclCommGetAsyncError(world, &failure));
  EXPECT(failure == ncclRemoteError);
}

/* Nobody calls anything: the error is there all the same, also on the rank that has caused it. */
void all_hear_of_a_revocation(ncclComm_t world, int rank, int size) {
  int value = 1, waited;
  ncclResult_t failure = ncclSuccess;
  if (rank == size - 1) SUCCEEDS(ncclCommRevoke(world, NCCL_REVOKE_DEFAULT));
  for (waited = 0; waited < 10000 && failure == ncclSuccess; ++waited) {
    SUCCEEDS(ncclCommGetAsyncError(world, &failure));
    sleep_ms(1);
  }
  EXPECT(failure == ncclRemoteError);
  FAILS(ncclAllReduce(&value, &value, 1, ncclInt, ncclSum, world, NULL), ncclRemoteError, "ncclCommRevoke()");
}

void refuse_wrong_joins(void) {
  ncclUniqueId id, wrong, ids[2];
  ncclComm_t comms[2];
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  memset(&wrong, 0, sizeof wrong);
  FAILS(ncclGetUniqueId(NULL), ncclInvalidArgument, "null");
  SUCCEEDS(ncclGetUniqueId(&id));
  FAILS(ncclCommInitRank(comms, 2, wrong, 1), ncclInvalidArgument, "only zeros");
  EXPECT(comms[0] == NULL);
  FAILS(ncclCommInitRank(NULL, 1, id, 0), ncclInvalidArgument, "ncclCommInitRank");
  FAILS(ncclCommInitRank(comms, 2, id, -1), ncclInvalidArgument, "rank -1");
  FAILS(ncclCommInitRankScalable(comms, 1, 0, 0, &id, NULL), ncclInvalidArgument, "no unique id");
  config.magic = 1;
  FAILS(ncclCommInitRankConfig(comms, 1, id, 0, &config), ncclInvalidArgument, "NCCL_CONFIG_INITIALIZER");
  FAILS(ncclCommInitAll(comms, 0, NULL), ncclInvalidArgument, "at least one rank");
  FAILS(ncclCommInitAll(NULL, 1, NULL), ncclInvalidArgument, "null");

  /* Rank 1 believes in three ranks. Nobody gets a communicator. */
  SUCCEEDS(ncclGroupStart());
  SUCCEEDS(ncclCommInitRank(&comms[0], 2, id, 0));
  SUCCEEDS(ncclCommInitRank(&comms[1], 3, id, 1));
  EXPECT(comms[0] == NULL && comms[1] == NULL);
  FAILS(ncclGroupEnd(), ncclInvalidArgument, "world size");
  EXPECT(comms[0] == NULL && comms[1] == NULL);
  FAILS(ncclCommInitRank(&comms[0], 1, id, 0), ncclInvalidUsage, "before");

  /* Of several ids the first says where all meet. */
  SUCCEEDS(ncclGetUniqueId(&ids[0]));
  SUCCEEDS(ncclGetUniqueId(&ids[1]));
  config.magic = ((ncclConfig_t)NCCL_CONFIG_INITIALIZER).magic;
  SUCCEEDS(ncclGroupStart());
  SUCCEEDS(ncclCommInitRankScalable(&comms[0], 2, 0, 2, ids, &config));
  SUCCEEDS(ncclCommInitRank(&comms[1], 2, ids[0], 1));
  SUCCEEDS(ncclGroupEnd());
  SUCCEEDS(ncclCommDestroy(comms[0]));
  SUCCEEDS(ncclCommDestroy(comms[1]));
}

/* Of nccl_device.h, which a compiler of C does not read. */
ncclResult_t ncclDevCommCreate(ncclComm_t comm, const void* requirements, void* made);
struct team {
  int nRanks, rank, stride;
};
struct team ncclTeamWorld(ncclComm_t comm);
struct team ncclTeamLsa(ncclComm_t comm);
int ncclTeamRankToWorld(ncclComm_t comm, struct team team, int rank);

void refuse_kernels(ncclComm_t world, int rank, int size) {
  const struct team all = ncclTeamWorld(world), near = ncclTeamLsa(world);
  int r;
  FAILS(ncclDevCommCreate(world, NULL, NULL), ncclInvalidUsage, "ncclDevCommCreate: tutti does not serve kernels");
  EXPECT(all.nRanks == size && all.rank == rank && all.stride == 1);
  EXPECT(near.nRanks == 1 && ncclTeamRankToWorld(world, near, 0) == rank);
  for (r = 0; r < size; ++r) EXPECT(ncclTeamRankToWorld(world, all, r) == r);
}
