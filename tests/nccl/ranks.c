/* program CASE RANKS: runs a case of the tests, and exits with 0 if all was as it should be. */
#define _POSIX_C_SOURCE 200809L
#include "ranks.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { kMostRanks = 8 };

int frees_world = 0;

static void be_rank(int rank, int size, rank_body body, int (*pipes)[2]) {
  ncclUniqueId id;
  ncclComm_t world = NULL;
  int other, number = -1;
  if (rank == 0) {
    SUCCEEDS(ncclGetUniqueId(&id));
    for (other = 1; other < size; ++other) EXPECT(write(pipes[other][1], &id, sizeof id) == (long)sizeof id);
  } else {
    EXPECT(read(pipes[rank][0], &id, sizeof id) == (long)sizeof id);
  }
  SUCCEEDS(ncclCommInitRank(&world, size, id, rank));
  if (world == NULL) return;
  SUCCEEDS(ncclCommUserRank(world, &number));
  EXPECT(number == rank);
  SUCCEEDS(ncclCommCount(world, &number));
  EXPECT(number == size);
  body(world, rank, size);
  if (!frees_world) SUCCEEDS(ncclCommDestroy(world));
}

void run_ranks(int size, rank_body body) {
  int pipes[kMostRanks][2], rank, status;
  pid_t children[kMostRanks];
  for (rank = 0; rank < size; ++rank) EXPECT(pipe(pipes[rank]) == 0);
  fflush(NULL);
  for (rank = 0; rank < size; ++rank) {
    children[rank] = fork();
    if (children[rank] != 0) continue;
    be_rank(rank, size, body, pipes);
    exit(exit_status());
  }
  for (rank = 0; rank < size; ++rank) {
    EXPECT(waitpid(children[rank], &status, 0) == children[rank]);
    EXPECT(status == 0);
  }
}

static const struct {
  const char* name;
  rank_body body;
} cases[] = {
    {"all_collectives", all_collectives},
    {"premultiplied_sums", premultiplied_sums},
    {"sends_and_groups", sends_and_groups},
    {"parts", parts},
    {"memories", memories},
    {"refuse_wrong_calls", refuse_wrong_calls},
    {"refuse_what_cannot_be", refuse_what_cannot_be},
    {"refuse_kernels", refuse_kernels},
    {"refuse_what_is_finalized", refuse_what_is_finalized},
    {"all_hear_of_a_mismatch", all_hear_of_a_mismatch},
    {"all_hear_of_an_abort", all_hear_of_an_abort},
    {"all_hear_of_a_revocation", all_hear_of_a_revocation},
};

int main(int argc, char** argv) {
  const int size = argc == 3 ? atoi(argv[2]) : 0;
  size_t i;
  int found = 0;
  for (i = 0; size >= 1 && size <= kMostRanks && i < sizeof cases / sizeof *cases; ++i)
    if (strcmp(argv[1], cases[i].name) == 0) ++found, run_ranks(size, cases[i].body);
  if (argc == 2 && strcmp(argv[1], "refuse_wrong_joins") == 0) ++found, refuse_wrong_joins();
  EXPECT(found == 1);
  return exit_status();
}
