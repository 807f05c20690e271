/* Send and receive, and groups of calls. */
#include "program.h"

enum { kLength = 5000, kSmall = 50 };

static void set_all(int* values, int value) {
  int i;
  for (i = 0; i < kLength; ++i) values[i] = value;
}
static int all_are(const int* values, int value) {
  int i;
  for (i = 0; i < kLength; ++i)
    if (values[i] != value) return 0;
  return 1;
}

/* Everybody sends to the next rank, to itself too, and receives then. */
static void exchange(tutti_comm_t world, int rank, int size) {
  static int out[kLength], in[kLength], own[kLength];
  const int next = (rank + 1) % size, previous = (rank + size - 1) % size;
  set_all(out, rank);
  SUCCEEDS(tutti_group_start());
  SUCCEEDS(tutti_send(out, kLength, TUTTI_INT32, next, world, NULL));
  SUCCEEDS(tutti_send(out, kLength, TUTTI_INT32, rank, world, NULL));
  SUCCEEDS(tutti_recv(own, kLength, TUTTI_INT32, rank, world, NULL));
  SUCCEEDS(tutti_recv(in, kLength, TUTTI_INT32, previous, world, NULL));
  SUCCEEDS(tutti_group_end());
  EXPECT(all_are(in, previous));
  EXPECT(all_are(own, rank));
}

static void small_sums(tutti_comm_t world, int size) {
  int in[kSmall], out[kSmall], i, right = 1;
  for (i = 0; i < kSmall; ++i) in[i] = i;
  SUCCEEDS(tutti_group_start());
  for (i = 0; i < kSmall; ++i) SUCCEEDS(tutti_all_reduce(in + i, out + i, 1, TUTTI_INT32, TUTTI_SUM, world, NULL));
  SUCCEEDS(tutti_group_end());
  for (i = 0; i < kSmall; ++i) right = right && out[i] == size * i;
  EXPECT(right);
}

/* Rank 0 finds out who has sent. */
static void from_anybody(tutti_comm_t world, int rank, int size) {
  int value = rank, from = 0, left, sum = 0;
  FAILS(tutti_probe(0, world, NULL), TUTTI_INVALID_ARGUMENT, "peer");
  FAILS(tutti_probe(-1, world, &from), TUTTI_INVALID_ARGUMENT, "limit");
  if (rank != 0) SUCCEEDS(tutti_send(&value, 1, TUTTI_INT32, 0, world, NULL));
  for (left = rank == 0 ? size - 1 : 0; left > 0; --left) {
    SUCCEEDS(tutti_probe(60000, world, &from));
    EXPECT(from > 0);
    SUCCEEDS(tutti_recv(&value, 1, TUTTI_INT32, from, world, NULL));
    EXPECT(value == from);
    sum += value;
  }
  EXPECT(rank != 0 || sum == size * (size - 1) / 2);
  if (rank != 0) return;
  SUCCEEDS(tutti_probe(0, world, &from));
  EXPECT(from == -1);
}

static void tagged(tutti_comm_t world, int rank, int size) {
  tutti_work_t work = NULL;
  int value = 7, got = 0;
  FAILS(tutti_start_send(&value, 1, TUTTI_INT32, (rank + 1) % size, 65536, world, NULL, &work), TUTTI_INVALID_ARGUMENT,
        "tag");
  EXPECT(work == NULL);
  if (rank > 1) return;
  if (rank == 0) SUCCEEDS(tutti_start_send(&value, 1, TUTTI_INT32, 1, 9, world, NULL, &work));
  if (rank == 1) SUCCEEDS(tutti_start_recv(&got, 1, TUTTI_INT32, 0, 9, world, NULL, &work));
  SUCCEEDS(tutti_work_wait(work));
  SUCCEEDS(tutti_work_free(work));
  EXPECT(rank == 0 || got == 7);
}

void sends_and_groups(tutti_comm_t world, int rank, int size) {
  int value = 1;
  exchange(world, rank, size);
  small_sums(world, size);
  from_anybody(world, rank, size);
  tagged(world, rank, size);
  FAILS(tutti_group_end(), TUTTI_INVALID_ARGUMENT, "group_start");
  FAILS(tutti_send(&value, 1, TUTTI_INT32, size, world, NULL), TUTTI_INVALID_ARGUMENT, "no rank");
  FAILS(tutti_send(&value, 1, TUTTI_INT32, rank, world, NULL), TUTTI_INVALID_USAGE, "group");
  FAILS(tutti_recv(&value, 1, (tutti_dtype_t)77, 0, world, NULL), TUTTI_INVALID_ARGUMENT, "dtype");
  FAILS(tutti_recv(NULL, 1, TUTTI_INT32, (rank + 1) % size, world, NULL), TUTTI_INVALID_ARGUMENT, "null");
  FAILS(tutti_send(&value, 1, TUTTI_INT32, 0, NULL, NULL), TUTTI_INVALID_ARGUMENT, "comm");
  SUCCEEDS(tutti_barrier(world, NULL));
}
