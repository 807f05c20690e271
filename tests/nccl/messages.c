/* Send and receive, groups, parts of a communicator, and memory. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "ranks.h"

enum { kElements = 3000 };

/* All ranks send to all, and to themselves, and receive then. */
static void exchange(ncclComm_t world, int rank, int size) {
  int32_t* const out = malloc((size_t)size * kElements * sizeof *out);
  int32_t* const in = malloc((size_t)size * kElements * sizeof *in);
  int peer, i, right = 1;
  for (i = 0; i < size * kElements; ++i) out[i] = rank * 100000 + i;
  SUCCEEDS(ncclGroupStart());
  for (peer = 0; peer < size; ++peer) {
    SUCCEEDS(ncclSend(out + peer * kElements, kElements, ncclInt32, peer, world, NULL));
    SUCCEEDS(ncclRecv(in + peer * kElements, kElements, ncclInt32, peer, world, NULL));
  }
  SUCCEEDS(ncclGroupEnd());
  for (peer = 0; peer < size; ++peer)
    for (i = 0; i < kElements; ++i) right = right && in[peer * kElements + i] == peer * 100000 + rank * kElements + i;
  EXPECT(right);
  free(in);
  free(out);
}

void sends_and_groups(ncclComm_t world, int rank, int size) {
  float in[60], out[60];
  int i;
  exchange(world, rank, size);
  for (i = 0; i < 60; ++i) in[i] = (float)(rank + i), out[i] = -1;
  SUCCEEDS(ncclGroupStart());
  SUCCEEDS(ncclGroupStart());
  for (i = 0; i < 60; ++i)
    SUCCEEDS(pncclAllReduce(in + i, out + i, 1, ncclFloat, i % 2 ? ncclSum : ncclMax, world, NULL));
  SUCCEEDS(ncclGroupEnd());
  EXPECT(out[0] == -1 && out[59] == -1);
  SUCCEEDS(ncclGroupEnd());
  for (i = 0; i < 60; ++i) EXPECT(out[i] == (float)(i % 2 ? size * i + size * (size - 1) / 2 : size - 1 + i));

  /* A pair without a group: the lower rank sends first. */
  if (rank < 2 && size >= 2) {
    if (rank == 0) SUCCEEDS(ncclSend(in, 60, ncclFloat, 1, world, NULL));
    SUCCEEDS(ncclRecv(out, 60, ncclFloat, 1 - rank, world, NULL));
    if (rank == 1) SUCCEEDS(ncclSend(in, 60, ncclFloat, 0, world, NULL));
    EXPECT(out[59] == (float)(1 - rank + 59));
  }
}

/* Evens and odds, in the reverse order; then rank 0 alone, which all others take part in. */
void parts(ncclComm_t world, int rank, int size) {
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  ncclComm_t half = NULL, alone = world;
  int number = -1, sum = rank, expected = 0, r, count = 0;
  config.splitShare = 1;
  config.blocking = 0;
  SUCCEEDS(ncclCommSplit(world, rank % 2, -rank, &half, &config));
  SUCCEEDS(ncclCommSplit(world, rank == 0 ? 5 : NCCL_SPLIT_NOCOLOR, 0, &alone, NULL));
  for (r = rank % 2; r < size; r += 2) expected += r, ++count;
  SUCCEEDS(ncclCommCount(half, &number));
  EXPECT(number == count);
  SUCCEEDS(ncclCommUserRank(half, &number));
  EXPECT(number == count - 1 - rank / 2);
  SUCCEEDS(ncclAllReduce(&sum, &sum, 1, ncclInt, ncclSum, half, NULL));
  EXPECT(sum == expected);
  EXPECT((alone != NULL) == (rank == 0));
  if (alone != NULL) SUCCEEDS(ncclCommCount(alone, &number));
  EXPECT(rank != 0 || number == 1);
  SUCCEEDS(ncclCommDestroy(half));
  SUCCEEDS(ncclCommDestroy(alone));
}

void memories(ncclComm_t world, int rank, int size) {
  static const size_t sizes[] = {0, 1, 4096, 100000};
  void *memory = NULL, *handle = NULL;
  ncclWindow_t window = NULL;
  size_t i;
  int device = 77;
  SUCCEEDS(ncclCommCuDevice(world, &device));
  EXPECT(device >= -1);
  for (i = 0; i < sizeof sizes / sizeof *sizes; ++i) {
    SUCCEEDS(ncclMemAlloc(&memory, sizes[i]));
    EXPECT(memory != NULL && (uintptr_t)memory % 256 == 0);
    if (device < 0) memset(memory, 1, sizes[i]); /* else it is that GPU's */
    SUCCEEDS(ncclMemFree(memory));
  }
  SUCCEEDS(ncclMemFree(NULL));
  FAILS(ncclMemAlloc(NULL, 8), ncclInvalidArgument, "ncclMemAlloc");
  FAILS(ncclMemAlloc(&memory, SIZE_MAX), ncclSystemError, "no memory");
  EXPECT(memory == NULL);
  if (device >= 0) return;

  SUCCEEDS(ncclMemAlloc(&memory, 8192));
  SUCCEEDS(ncclCommRegister(world, memory, 8192, &handle));
  SUCCEEDS(ncclCommWindowRegister(world, memory, 8192, &window, NCCL_WIN_COLL_SYMMETRIC));
  EXPECT(handle != NULL && window != NULL);
  ((int*)memory)[2047] = rank;
  SUCCEEDS(ncclAllReduce(memory, memory, 2048, ncclInt, ncclMax, world, NULL));
  EXPECT(((int*)memory)[2047] == size - 1);
  SUCCEEDS(ncclCommWindowDeregister(world, window));
  SUCCEEDS(ncclCommDeregister(world, handle));
  SUCCEEDS(ncclMemFree(memory));
  FAILS(ncclCommRegister(world, NULL, 8192, &handle), ncclInvalidArgument, "null");
  EXPECT(handle == NULL);
}
