/* Communicators that some ranks of another one make alone: tutti_comm_create_group(). */
#define _POSIX_C_SOURCE 200809L
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "program.h"

enum { kRanks = 4 };

struct list {
  int ranks[kRanks], size;
};

static int place_in(const struct list* list, int rank) {
  int i;
  for (i = 0; i < list->size; ++i)
    if (list->ranks[i] == rank) return i;
  return -1;
}

/* The sum of the members' numbers, and a message round the ring of them. */
static void expect_works(tutti_comm_t part, const struct list* list, int rank) {
  const int size = list->size, own = place_in(list, rank);
  int i, count = -1, here = -1, value = rank, sum = 0, theirs = -1;
  tutti_work_t sending = NULL, receiving = NULL;
  SUCCEEDS(tutti_comm_count(part, &count));
  SUCCEEDS(tutti_comm_rank(part, &here));
  EXPECT(count == size && here == own);
  for (i = 0; i < size; ++i) sum += list->ranks[i];
  SUCCEEDS(tutti_all_reduce(&value, &value, 1, TUTTI_INT32, TUTTI_SUM, part, NULL));
  EXPECT(value == sum);
  SUCCEEDS(tutti_start_send(&rank, 1, TUTTI_INT32, (own + 1) % size, 7, part, NULL, &sending));
  SUCCEEDS(tutti_start_recv(&theirs, 1, TUTTI_INT32, (own + size - 1) % size, 7, part, NULL, &receiving));
  SUCCEEDS(tutti_work_wait(receiving));
  SUCCEEDS(tutti_work_wait(sending)); /* until then it may read `rank` */
  SUCCEEDS(tutti_work_free(receiving));
  SUCCEEDS(tutti_work_free(sending));
  EXPECT(theirs == list->ranks[(own + size - 1) % size]);
}

static void make_groups(tutti_comm_t world, int rank, int size) {
  static const struct list lists[] = {{{0, 1}, 2},    {{2, 3}, 2},    {{3, 1}, 2},
                                      {{2, 0, 1}, 3}, {{1, 2, 3}, 3}, {{3, 2, 1, 0}, 4}};
  enum { kLists = sizeof lists / sizeof *lists };
  tutti_comm_t parts[kLists][2], wrong = world;
  int i, value = 1;
  static const int twice[] = {0, 1, 2, 3, 0};
  memset(parts, 0, sizeof parts);
  EXPECT(size == kRanks);
  for (i = 0; i < kLists; ++i) { /* each rank begins with another one; the second is of another name */
    const struct list* const list = &lists[(i + 2 * rank) % kLists];
    tutti_comm_t* const both = parts[list - lists];
    if (place_in(list, rank) < 0) continue;
    SUCCEEDS(tutti_comm_create_group(world, list->ranks, list->size, NULL, &both[0]));
    SUCCEEDS(tutti_comm_create_group(world, list->ranks, list->size, i % 2 == 0 ? "" : NULL, &both[1]));
  }
  for (i = 0; i < 2 * kLists; ++i) {
    if (parts[i % kLists][i / kLists] == NULL) continue;
    expect_works(parts[i % kLists][i / kLists], &lists[i % kLists], rank);
  }
  FAILS(tutti_comm_create_group(NULL, twice, 4, NULL, &wrong), TUTTI_INVALID_ARGUMENT, "comm is null");
  EXPECT(wrong == NULL);
  FAILS(tutti_comm_create_group(world, NULL, 4, NULL, &wrong), TUTTI_INVALID_ARGUMENT, "ranks is null");
  FAILS(tutti_comm_create_group(world, twice, 4, NULL, NULL), TUTTI_INVALID_ARGUMENT, "part is null");
  FAILS(tutti_comm_create_group(world, twice, -1, NULL, &wrong), TUTTI_INVALID_ARGUMENT, "nranks is -1");
  FAILS(tutti_comm_create_group(world, NULL, 0, NULL, &wrong), TUTTI_INVALID_ARGUMENT, "the list has no ranks");
  FAILS(tutti_comm_create_group(world, twice, 5, NULL, &wrong), TUTTI_INVALID_ARGUMENT, "rank 0 is in the list twice");
  i = (rank + 1) % kRanks;
  FAILS(tutti_comm_create_group(world, &i, 1, NULL, &wrong), TUTTI_INVALID_ARGUMENT, "is not in the list");
  i = kRanks;
  FAILS(tutti_comm_create_group(world, &i, 1, NULL, &wrong), TUTTI_INVALID_ARGUMENT, "there is no rank 4");
  EXPECT(wrong == NULL);

  /* In a group of calls it is made at once, and takes part in it. */
  SUCCEEDS(tutti_group_start());
  SUCCEEDS(tutti_comm_create_group(world, twice, 4, "in a group", &wrong));
  EXPECT(wrong != NULL);
  SUCCEEDS(tutti_all_reduce(&value, &value, 1, TUTTI_INT32, TUTTI_SUM, wrong, NULL));
  SUCCEEDS(tutti_group_end());
  EXPECT(value == kRanks);
  SUCCEEDS(tutti_comm_destroy(wrong));
  for (i = 0; i < 2 * kLists; ++i) SUCCEEDS(tutti_comm_destroy(parts[i % kLists][i / kLists]));
}

/* What a part begins with: a ring that only one rank names would be a mismatch, and the timeout is a short one. */
static void inherit(tutti_comm_t world, int rank, int size) {
  const int pair[2] = {3, 1};
  tutti_comm_t part = NULL;
  int value = 1;
  EXPECT(size == kRanks);
  SUCCEEDS(tutti_barrier(world, NULL));
  if (rank % 2 == 1) {
    SUCCEEDS(tutti_comm_set_order(world, TUTTI_ORDER_ANY));
    SUCCEEDS(tutti_comm_set_algorithm(world, "ring"));
    SUCCEEDS(tutti_comm_set_timeout(world, 3000));
    SUCCEEDS(tutti_comm_create_group(world, pair, 2, "pair", &part));
    SUCCEEDS(tutti_comm_set_timeout(world, 0));
    SUCCEEDS(tutti_comm_set_algorithm(world, NULL));
    SUCCEEDS(tutti_comm_set_order(world, TUTTI_ORDER_CANONICAL));
    SUCCEEDS(tutti_all_reduce(&value, &value, 1, TUTTI_INT32, TUTTI_SUM, part, NULL));
    EXPECT(value == 2);
    if (rank == 1) {
      FAILS(tutti_all_reduce(&value, &value, 1, TUTTI_INT32, TUTTI_SUM, part, NULL), TUTTI_REMOTE_ERROR,
            "rank 0 (of the job: 3) has not entered all_reduce #2 (int32 x 1, sum, ring, order any)");
      EXPECT(strstr(tutti_last_error(part), "set_timeout()") != NULL);
      EXPECT(tutti_last_error_peer(part) == 0);
    }
  }
  SUCCEEDS(tutti_barrier(world, NULL));
  SUCCEEDS(tutti_comm_destroy(part));
}

void groups_of_some_ranks(const char* transport) { run_ranks(transport, kRanks, make_groups); }
void groups_begin_as_their_communicator(const char* transport) { run_ranks(transport, kRanks, inherit); }

/* What this process takes of the system, as it grows. */

static long entries_of(const char* folder) {
  DIR* const opened = opendir(folder);
  long count = -2;
  if (opened == NULL) return -1;
  while (readdir(opened) != NULL) ++count;
  closedir(opened);
  return count;
}

static void say_what_is_taken(const char* when, int rank) {
  char line[200];
  long kib = 0;
  FILE* const status = fopen("/proc/self/status", "r");
  while (status != NULL && fgets(line, sizeof line, status) != NULL)
    if (strncmp(line, "VmSize:", 7) == 0) kib = atol(line + 7);
  if (status != NULL) fclose(status);
  printf("rank %d: %ld MiB of address space, %ld descriptors, %ld threads %s\n", rank, kib / 1024,
         entries_of("/proc/self/fd"), entries_of("/proc/self/task"), when);
}

static void use(tutti_comm_t part, int rank) {
  static float values[100000];
  int size = 0, value = rank, theirs = -1;
  tutti_work_t work = NULL;
  SUCCEEDS(tutti_comm_count(part, &size));
  values[99999] = 1;
  SUCCEEDS(tutti_all_reduce(values, values, 100000, TUTTI_FLOAT32, TUTTI_SUM, part, NULL));
  EXPECT(values[99999] == (float)size);
  SUCCEEDS(tutti_start_send(&value, 1, TUTTI_INT32, (rank + 1) % size, 0, part, NULL, &work));
  SUCCEEDS(tutti_recv(&theirs, 1, TUTTI_INT32, (rank + size - 1) % size, part, NULL));
  SUCCEEDS(tutti_work_free(work));
  EXPECT(theirs == (rank + size - 1) % size);
}

static void make_fifty(tutti_comm_t world, int rank, int size) {
  static const int all[] = {0, 1, 2, 3, 4, 5, 6, 7};
  tutti_comm_t parts[50];
  int i;
  say_what_is_taken("once joined", rank);
  use(world, rank);
  say_what_is_taken("with one communicator in use", rank);
  for (i = 0; i < 50; ++i) {
    if (i % 2 == 0) {
      SUCCEEDS(tutti_comm_split(world, 0, 0, &parts[i]));
    } else {
      SUCCEEDS(tutti_comm_create_group(world, all, size, NULL, &parts[i]));
    }
    use(parts[i], rank);
  }
  say_what_is_taken("with 51 communicators in use", rank);
  for (i = 0; i < 50; ++i) use(parts[i], rank);
  for (i = 0; i < 50; ++i) SUCCEEDS(tutti_comm_destroy(parts[i]));
}

void fifty_groups(const char* transport) {
  run_ranks(transport, 2, make_fifty);
  run_ranks(transport, 8, make_fifty);
}
