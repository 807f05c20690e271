/* A program for NCCL, whose buffers are of malloc(): four ranks in one thread. */
#include <nccl.h>
#include <stdio.h>
#include <stdlib.h>

enum { kRanks = 4, kCount = 1000 };

static int fails(ncclResult_t result) {
  if (result == ncclSuccess) return 0;
  fprintf(stderr, "%s: %s\n", ncclGetErrorString(result), ncclGetLastError(NULL));
  return 1;
}

int main(void) {
  ncclComm_t comms[kRanks];
  float *in[kRanks], *out[kRanks];
  int rank, i;
  if (fails(ncclCommInitAll(comms, kRanks, NULL))) return 1;
  for (rank = 0; rank < kRanks; ++rank) {
    in[rank] = malloc(kCount * sizeof(float));
    out[rank] = malloc(kCount * sizeof(float));
    for (i = 0; i < kCount; ++i) in[rank][i] = 0.5f * (float)(rank + i);
  }
  ncclGroupStart();
  for (rank = 0; rank < kRanks; ++rank)
    ncclAllReduce(in[rank], out[rank], kCount, ncclFloat, ncclSum, comms[rank], NULL);
  if (fails(ncclGroupEnd())) return 1;
  for (rank = 0; rank < kRanks; ++rank) {
    for (i = 0; i < kCount; ++i)
      if (out[rank][i] != 3.0f + 2.0f * (float)i) return 1;
    free(in[rank]);
    free(out[rank]);
    if (fails(ncclCommDestroy(comms[rank]))) return 1;
  }
  printf("%d ranks: the sum is right\n", kRanks);
  return 0;
}
