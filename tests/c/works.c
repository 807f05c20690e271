/* Started calls: waited for with a limit, told of, and ended by a timeout. */
#include <string.h>

#include "program.h"

struct told {
  volatile int times;
  volatile tutti_result_t result;
  volatile tutti_error_code_t code;
  char text[500];
};

static void tell(void* user, tutti_result_t result, tutti_error_code_t code, const char* text) {
  struct told* const told = user;
  told->result = result;
  told->code = code;
  strncpy(told->text, text, sizeof told->text - 1);
  __sync_synchronize();
  ++told->times;
}

static int comes(const struct told* told, int times) {
  int waited;
  for (waited = 0; waited < 20000 && told->times < times; ++waited) sleep_ms(1);
  __sync_synchronize();
  return told->times == times;
}

void works_are_told_of(tutti_comm_t world, int rank, int size) {
  static float in[100000], out[100000];
  struct told told = {0, TUTTI_INTERNAL_ERROR, TUTTI_ERROR_INTERNAL, "?"};
  tutti_work_t work = NULL;
  int done = -1;
  (void)rank;
  in[99999] = 1;
  SUCCEEDS(tutti_start_all_reduce(in, out, 100000, TUTTI_FLOAT32, TUTTI_SUM, world, NULL, &work));
  FAILS(tutti_work_on_complete(work, NULL, NULL), TUTTI_INVALID_ARGUMENT, "tell");
  SUCCEEDS(tutti_work_on_complete(work, tell, &told));
  EXPECT(comes(&told, 1));
  EXPECT(told.result == TUTTI_SUCCESS && told.code == TUTTI_ERROR_NONE && told.text[0] == '\0');
  EXPECT(out[99999] == (float)size);
  SUCCEEDS(tutti_work_wait_for(work, 0, &done));
  EXPECT(done == 1);
  SUCCEEDS(tutti_work_free(work));
}

/* The other ranks do not come: rank 0 waits for a moment, and then the call times out by what the communicator says. */
void works_time_out(tutti_comm_t world, int rank, int size) {
  struct told told = {0, TUTTI_SUCCESS, TUTTI_ERROR_NONE, ""};
  tutti_work_t work = NULL;
  int done = -1, in = 1, out = 0;
  (void)size;
  FAILS(tutti_comm_set_timeout(world, -1), TUTTI_INVALID_ARGUMENT, "timeout");
  SUCCEEDS(tutti_barrier(world, NULL));
  if (rank != 0) {
    tutti_result_t failure = TUTTI_SUCCESS;
    int waited;
    for (waited = 0; waited < 20000 && failure == TUTTI_SUCCESS; ++waited, sleep_ms(1))
      SUCCEEDS(tutti_comm_get_async_error(world, &failure));
    EXPECT(failure == TUTTI_REMOTE_ERROR);
    return;
  }
  SUCCEEDS(tutti_comm_set_timeout(world, 3000)); /* another rank may still be in the barrier */
  SUCCEEDS(tutti_start_all_reduce(&in, &out, 1, TUTTI_INT32, TUTTI_SUM, world, NULL, &work));
  SUCCEEDS(tutti_work_wait_for(work, 10, &done));
  EXPECT(done == 0);
  SUCCEEDS(tutti_work_on_complete(work, tell, &told));
  EXPECT(comes(&told, 1));
  EXPECT(told.result == TUTTI_REMOTE_ERROR && told.code == TUTTI_ERROR_TIMEOUT);
  EXPECT(strstr(told.text, "not entered all_reduce #2") != NULL);
  FAILS(tutti_work_wait_for(work, 0, &done), TUTTI_REMOTE_ERROR, "not entered");
  EXPECT(done == 1);
  done = 0;
  FAILS(tutti_work_test(work, &done), TUTTI_REMOTE_ERROR, "not entered");
  EXPECT(done == 1);
  SUCCEEDS(tutti_work_free(work));
}

static void expect_fails(tutti_comm_t world) {
  tutti_result_t failure = TUTTI_SUCCESS;
  int waited;
  for (waited = 0; waited < 20000 && failure == TUTTI_SUCCESS; ++waited, sleep_ms(1))
    SUCCEEDS(tutti_comm_get_async_error(world, &failure));
  EXPECT(failure == TUTTI_REMOTE_ERROR);
}

/* The other ranks come to the first two calls late, and to the third not at all. The communicator's timeout is shorter
   than the first two take, and longer than this test. */
void works_time_out_by_their_own_timeout(tutti_comm_t world, int rank, int size) {
  tutti_work_t work = NULL;
  int ones[3] = {1, 1, 1}, out[3] = {0, 0, 0};
  const int root = 1;
  SUCCEEDS(tutti_barrier(world, NULL));
  if (rank == 0) SUCCEEDS(tutti_comm_set_timeout(world, 1500)); /* its next two lines may take that long */
  if (rank != 0) sleep_ms(2200);
  SUCCEEDS(tutti_start_all_reduce(&ones[0], &out[0], 1, TUTTI_INT32, TUTTI_SUM, world, NULL, &work));
  SUCCEEDS(tutti_work_set_timeout(work, 20000));
  SUCCEEDS(tutti_work_wait(work));
  EXPECT(out[0] == size);
  SUCCEEDS(tutti_work_set_timeout(work, 1)); /* it is over: nothing happens */
  SUCCEEDS(tutti_work_wait(work));
  SUCCEEDS(tutti_work_free(work));

  if (rank != root) SUCCEEDS(tutti_comm_set_timeout(world, 20000));
  SUCCEEDS(tutti_barrier(world, NULL));
  if (rank == root) {
    expect_fails(world);
    return;
  }
  FAILS(tutti_work_set_timeout(NULL, 5), TUTTI_INVALID_ARGUMENT, "work is null");
  SUCCEEDS(tutti_start_recv(&out[1], 1, TUTTI_INT32, root, 0, world, NULL, &work));
  FAILS(tutti_work_set_timeout(work, -1), TUTTI_INVALID_ARGUMENT, "timeout is -1 ms");
  if (rank != 0) {
    FAILS(tutti_work_wait(work), TUTTI_REMOTE_ERROR, "rank 1 has not entered");
    SUCCEEDS(tutti_work_free(work));
    return;
  }
  SUCCEEDS(tutti_work_set_timeout(work, 3000)); /* the others may be late, too */
  FAILS(tutti_work_wait(work), TUTTI_REMOTE_ERROR, "rank 1 has not entered transfer #1");
  EXPECT(strstr(tutti_last_error(world), "(the timeout of this call)") != NULL);
  EXPECT(strstr(tutti_last_error(world), "TUTTI_TIMEOUT") == NULL);
  SUCCEEDS(tutti_work_free(work));
}
