/* What goes wrong with calls and communicators, and who is told. */
#define _POSIX_C_SOURCE 200809L
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "program.h"

static double values[64];

void refuse_nulls(void) {
  tutti_comm_t world = NULL, part = NULL;
  tutti_work_t work = NULL;
  tutti_memory_t memory = NULL;
  tutti_registration_t registration = NULL;
  tutti_result_t failure;
  int number = 0;
  EXPECT(strcmp(tutti_last_error(NULL), "") == 0 && tutti_last_error_code(NULL) == TUTTI_ERROR_NONE);
  FAILS(tutti_get_unique_id(NULL), TUTTI_INVALID_ARGUMENT, "tutti_get_unique_id: id is null");
  FAILS(tutti_get_version(NULL), TUTTI_INVALID_ARGUMENT, "version is null");
  FAILS(tutti_comm_init_env(NULL), TUTTI_INVALID_ARGUMENT, "comm is null");
  FAILS(tutti_all_reduce(values, values, 1, TUTTI_FLOAT64, TUTTI_SUM, NULL, NULL), TUTTI_INVALID_ARGUMENT,
        "tutti_all_reduce: comm is null");
  FAILS(tutti_barrier(NULL, NULL), TUTTI_INVALID_ARGUMENT, "tutti_barrier: comm is null");
  FAILS(tutti_start_barrier(NULL, NULL, &work), TUTTI_INVALID_ARGUMENT, "tutti_start_barrier: comm is null");
  FAILS(tutti_comm_split(NULL, 0, 0, &part), TUTTI_INVALID_ARGUMENT, "comm is null");
  FAILS(tutti_comm_finalize(NULL), TUTTI_INVALID_ARGUMENT, "comm is null");
  FAILS(tutti_comm_abort(NULL, "why"), TUTTI_INVALID_ARGUMENT, "comm is null");
  FAILS(tutti_comm_get_async_error(NULL, &failure), TUTTI_INVALID_ARGUMENT, "comm is null");
  FAILS(tutti_comm_count(NULL, &number), TUTTI_INVALID_ARGUMENT, "comm is null");
  FAILS(tutti_comm_rank(NULL, &number), TUTTI_INVALID_ARGUMENT, "comm is null");
  FAILS(tutti_comm_register(NULL, values, 8, &registration), TUTTI_INVALID_ARGUMENT, "comm is null");
  FAILS(tutti_comm_adopt(NULL, values, 8, &registration), TUTTI_INVALID_ARGUMENT, "comm is null");
  FAILS(tutti_memory_allocate(NULL, 8, &memory), TUTTI_INVALID_ARGUMENT, "comm is null");
  FAILS(tutti_work_test(NULL, &number), TUTTI_INVALID_ARGUMENT, "work is null");
  FAILS(tutti_work_wait(NULL), TUTTI_INVALID_ARGUMENT, "work is null");
  SUCCEEDS(tutti_work_free(NULL));
  SUCCEEDS(tutti_memory_free(NULL));
  SUCCEEDS(tutti_comm_deregister(NULL, NULL));
  SUCCEEDS(tutti_comm_destroy(NULL));
  EXPECT(tutti_memory_data(NULL) == NULL && tutti_memory_bytes(NULL) == 0);

  SUCCEEDS(tutti_comm_init_env(&world)); /* of one rank */
  FAILS(tutti_all_reduce(NULL, values, 1, TUTTI_FLOAT64, TUTTI_SUM, world, NULL), TUTTI_INVALID_ARGUMENT, "is null");
  FAILS(tutti_start_barrier(world, NULL, NULL), TUTTI_INVALID_ARGUMENT, "work is null");
  FAILS(tutti_comm_split(world, 0, 0, NULL), TUTTI_INVALID_ARGUMENT, "part is null");
  FAILS(tutti_comm_count(world, NULL), TUTTI_INVALID_ARGUMENT, "count is null");
  FAILS(tutti_comm_rank(world, NULL), TUTTI_INVALID_ARGUMENT, "rank is null");
  FAILS(tutti_comm_get_async_error(world, NULL), TUTTI_INVALID_ARGUMENT, "failure is null");
  FAILS(tutti_comm_register(world, NULL, 8, &registration), TUTTI_INVALID_ARGUMENT, "data is null");
  FAILS(tutti_comm_adopt(world, NULL, 8, &registration), TUTTI_INVALID_ARGUMENT, "data is null");
  FAILS(tutti_comm_adopt(world, values, 8, NULL), TUTTI_INVALID_ARGUMENT, "registration is null");
  FAILS(tutti_memory_allocate(world, 8, NULL), TUTTI_INVALID_ARGUMENT, "memory is null");
  SUCCEEDS(tutti_start_barrier(world, NULL, &work));
  FAILS(tutti_work_test(work, NULL), TUTTI_INVALID_ARGUMENT, "done is null");
  SUCCEEDS(tutti_work_free(work));
  SUCCEEDS(tutti_comm_destroy(world));
  SUCCEEDS(tutti_get_version(&number));
  EXPECT(number == TUTTI_VERSION_NUMBER);
  EXPECT(strcmp(tutti_result_text(TUTTI_REMOTE_ERROR), "remote error") == 0);
  EXPECT(strcmp(tutti_result_text((tutti_result_t)7), "in progress") == 0);
}

/* All of these leave the communicator usable. */
void refuse_wrong_numbers(tutti_comm_t world, int rank, int size) {
  tutti_work_t work = NULL;
  double out[64];
  (void)rank;
  FAILS(tutti_all_reduce(values, out, 4, 12, TUTTI_SUM, world, NULL), TUTTI_INVALID_ARGUMENT,
        "all_reduce: dtype is 12 but should be one of enum tutti_dtype");
  FAILS(tutti_all_reduce(values, out, 4, 99, TUTTI_SUM, world, NULL), TUTTI_INVALID_ARGUMENT, "dtype is 99");
  FAILS(tutti_all_reduce(values, out, 4, 101, TUTTI_SUM, world, NULL), TUTTI_INVALID_ARGUMENT, "dtype is 101");
  FAILS(tutti_reduce(values, out, 4, TUTTI_INT8, 99, 0, world, NULL), TUTTI_INVALID_ARGUMENT, "op is 99");
  FAILS(tutti_reduce(values, out, 4, TUTTI_INT8, 103, 0, world, NULL), TUTTI_INVALID_ARGUMENT, "op is 103");
  {
    const double half = 0.5;
    tutti_op_t op = 0;
    FAILS(tutti_op_create_premul_sum(NULL, &half, TUTTI_FLOAT64, TUTTI_SCALAR_HOST_IMMEDIATE, world),
          TUTTI_INVALID_ARGUMENT, "op is null");
    FAILS(tutti_op_create_premul_sum(&op, NULL, TUTTI_FLOAT64, TUTTI_SCALAR_HOST_IMMEDIATE, world),
          TUTTI_INVALID_ARGUMENT, "scalar is null");
    FAILS(tutti_op_create_premul_sum(&op, &half, 12, TUTTI_SCALAR_HOST_IMMEDIATE, world), TUTTI_INVALID_ARGUMENT,
          "dtype is 12");
    FAILS(tutti_op_create_premul_sum(&op, &half, TUTTI_FLOAT64, TUTTI_SCALAR_DEVICE, world), TUTTI_INVALID_USAGE,
          "must be in host memory");
    SUCCEEDS(tutti_op_create_premul_sum(&op, &half, TUTTI_FLOAT64, TUTTI_SCALAR_HOST_IMMEDIATE, world));
    FAILS(tutti_all_reduce(values, out, 4, TUTTI_FLOAT32, op, world, NULL), TUTTI_INVALID_ARGUMENT,
          "the scalar of premul_sum is of type float64");
    SUCCEEDS(tutti_op_destroy(op, world));
    FAILS(tutti_op_destroy(op, world), TUTTI_INVALID_ARGUMENT, "tutti_op_destroy: op is");
    FAILS(tutti_op_destroy(TUTTI_SUM, world), TUTTI_INVALID_ARGUMENT, "tutti_op_destroy: op is 0");
    FAILS(tutti_all_reduce(values, out, 4, TUTTI_FLOAT64, op, world, NULL), TUTTI_INVALID_ARGUMENT,
          "made for this communicator");
  }
  FAILS(tutti_all_reduce(values, out, 4, TUTTI_FLOAT64, TUTTI_BXOR, world, NULL), TUTTI_INVALID_ARGUMENT,
        "all_reduce: the operator bxor does not fit the element type float64");
  FAILS(tutti_all_reduce(values, out, 4, -1, TUTTI_SUM, world, NULL), TUTTI_INVALID_ARGUMENT, "dtype is -1");
  FAILS(tutti_reduce(values, out, 4, TUTTI_INT8, 5, 0, world, NULL), TUTTI_INVALID_ARGUMENT, "op is 5");
  FAILS(tutti_reduce(values, out, 4, TUTTI_INT8, -1, 0, world, NULL), TUTTI_INVALID_ARGUMENT, "op is -1");
  FAILS(tutti_broadcast(values, out, 4, TUTTI_INT8, size, world, NULL), TUTTI_INVALID_ARGUMENT, "root");
  FAILS(tutti_scatter(values, out, 4, TUTTI_INT8, -1, world, NULL), TUTTI_INVALID_ARGUMENT, "root");
  FAILS(tutti_start_gather(values, out, 4, TUTTI_INT8, size, world, NULL, &work), TUTTI_INVALID_ARGUMENT, "root");
  EXPECT(work == NULL && tutti_last_error_code(world) == TUTTI_ERROR_INVALID_ARGUMENT);
  FAILS(tutti_all_reduce(values, values + 1, 4, TUTTI_FLOAT64, TUTTI_SUM, world, NULL), TUTTI_INVALID_ARGUMENT,
        "overlap");
  FAILS(tutti_all_gather(values, out, (size_t)1 << 60, TUTTI_INT8, world, NULL), TUTTI_INVALID_ARGUMENT, "");
  SUCCEEDS(tutti_barrier(world, NULL));
}

void both_hear_of_a_mismatch(tutti_comm_t world, int rank, int size) {
  tutti_result_t result = tutti_all_reduce(values, values, rank == 1 ? 4 : 8, TUTTI_FLOAT64, TUTTI_SUM, world, NULL);
  (void)size;
  if (result == TUTTI_SUCCESS) result = tutti_barrier(world, NULL);
  EXPECT(result == TUTTI_INVALID_USAGE);
  EXPECT(tutti_last_error_code(world) == TUTTI_ERROR_MISMATCH);
  EXPECT(strstr(tutti_last_error(world), "float64 x 4") != NULL);
  EXPECT(strstr(tutti_last_error(world), "float64 x 8") != NULL);
  FAILS(tutti_barrier(world, NULL), TUTTI_INVALID_USAGE, "the ranks made different calls");
  SUCCEEDS(tutti_comm_get_async_error(world, &result));
  EXPECT(result == TUTTI_INVALID_USAGE);
}

void an_abort_reaches_all(tutti_comm_t world, int rank, int size) {
  tutti_comm_t part = NULL;
  tutti_work_t work = NULL;
  SUCCEEDS(tutti_comm_split(world, 0, 0, &part));
  if (rank == size - 1) SUCCEEDS(tutti_comm_abort(part, "out of cheese"));
  if (tutti_barrier(part, NULL) == TUTTI_SUCCESS) tutti_barrier(part, NULL);
  FAILS(tutti_barrier(part, NULL), TUTTI_REMOTE_ERROR, "out of cheese");
  EXPECT(tutti_last_error_code(part) == TUTTI_ERROR_ABORTED);
  FAILS(tutti_start_barrier(part, NULL, &work), TUTTI_REMOTE_ERROR, "out of cheese");
  FAILS(tutti_comm_finalize(part), TUTTI_REMOTE_ERROR, "out of cheese");
  SUCCEEDS(tutti_comm_destroy(part));
  SUCCEEDS(tutti_barrier(world, NULL)); /* the other communicator goes on */
}

void a_lost_rank_is_told_without_a_call(tutti_comm_t world, int rank, int size) {
  tutti_result_t failure = TUTTI_SUCCESS;
  /* The last rank may leave the barrier, and die, while another one is still in it. */
  const tutti_result_t met = tutti_barrier(world, NULL);
  EXPECT(met == TUTTI_SUCCESS || (rank != size - 1 && met == TUTTI_REMOTE_ERROR));
  if (rank == size - 1) kill(getpid(), SIGKILL);
  for (int i = 0; i < 2000 && failure == TUTTI_SUCCESS; ++i) {
    SUCCEEDS(tutti_comm_get_async_error(world, &failure));
    sleep_ms(5);
  }
  EXPECT(failure == TUTTI_REMOTE_ERROR);
  EXPECT(tutti_last_error_code(world) == TUTTI_ERROR_PEER_LOST);
  EXPECT(strstr(tutti_last_error(world), "was lost") != NULL);
  FAILS(tutti_barrier(world, NULL), TUTTI_REMOTE_ERROR, "was lost");

  tutti_comm_t left = NULL;
  int ranks = 0, sum = 0;
  FAILS(tutti_comm_shrink(world, NULL), TUTTI_INVALID_ARGUMENT, "part is null");
  SUCCEEDS(tutti_comm_shrink(world, &left));
  SUCCEEDS(tutti_comm_count(left, &ranks));
  EXPECT(ranks == size - 1);
  SUCCEEDS(tutti_all_reduce(&rank, &sum, 1, TUTTI_INT32, TUTTI_SUM, left, NULL));
  EXPECT(sum == (size - 1) * (size - 2) / 2);
  SUCCEEDS(tutti_comm_destroy(left));
}

struct parents {
  tutti_comm_t world;
  tutti_work_t work;
  tutti_memory_t memory;
  tutti_registration_t registration;
};

#define IS_REFUSED(call) FAILS((call), TUTTI_INVALID_USAGE, "this process was forked from the one that joined")

static void call_in_child(void* handles) {
  struct parents* const of = handles;
  tutti_comm_t const world = of->world;
  tutti_comm_t part = NULL;
  tutti_work_t work = NULL;
  tutti_memory_t memory = NULL;
  tutti_registration_t registration = NULL;
  tutti_unique_id id;
  tutti_result_t failure;
  int in[8] = {0}, out[8], number = -1;
  IS_REFUSED(tutti_all_reduce(in, out, 1, TUTTI_INT32, TUTTI_SUM, world, NULL));
  IS_REFUSED(tutti_reduce(in, out, 1, TUTTI_INT32, TUTTI_SUM, 0, world, NULL));
  IS_REFUSED(tutti_broadcast(in, out, 1, TUTTI_INT32, 0, world, NULL));
  IS_REFUSED(tutti_reduce_scatter(in, out, 1, TUTTI_INT32, TUTTI_SUM, world, NULL));
  IS_REFUSED(tutti_all_gather(in, out, 1, TUTTI_INT32, world, NULL));
  IS_REFUSED(tutti_gather(in, out, 1, TUTTI_INT32, 0, world, NULL));
  IS_REFUSED(tutti_scatter(in, out, 1, TUTTI_INT32, 0, world, NULL));
  IS_REFUSED(tutti_scan(in, out, 1, TUTTI_INT32, TUTTI_SUM, world, NULL));
  IS_REFUSED(tutti_barrier(world, NULL));
  IS_REFUSED(tutti_start_all_reduce(in, out, 1, TUTTI_INT32, TUTTI_SUM, world, NULL, &work));
  IS_REFUSED(tutti_start_barrier(world, NULL, &work));
  IS_REFUSED(tutti_work_test(of->work, &number));
  IS_REFUSED(tutti_work_wait(of->work));
  IS_REFUSED(tutti_work_set_timeout(of->work, 1000));
  IS_REFUSED(tutti_comm_set_timeout(world, 1000));
  IS_REFUSED(tutti_comm_split(world, 0, 0, &part));
  SUCCEEDS(tutti_comm_rank(world, &number));
  IS_REFUSED(tutti_comm_create_group(world, &number, 1, NULL, &part));
  IS_REFUSED(tutti_memory_allocate(world, 100, &memory));
  IS_REFUSED(tutti_comm_register(world, in, sizeof in, &registration));
  IS_REFUSED(tutti_comm_adopt(world, in, sizeof in, &registration));
  IS_REFUSED(tutti_comm_abort(world, NULL));
  IS_REFUSED(tutti_comm_get_async_error(world, &failure));
  EXPECT(tutti_last_error_code(world) == TUTTI_ERROR_UNSUPPORTED);
  SUCCEEDS(tutti_comm_count(world, &number)); /* they only read */
  EXPECT(number >= 1);
  SUCCEEDS(tutti_comm_rank(world, &number));
  IS_REFUSED(tutti_comm_finalize(world));
  SUCCEEDS(tutti_work_free(of->work));
  SUCCEEDS(tutti_memory_free(of->memory));
  SUCCEEDS(tutti_comm_deregister(world, of->registration));
  SUCCEEDS(tutti_comm_destroy(world));
  SUCCEEDS(tutti_get_unique_id(&id)); /* a job of the child's own */
  SUCCEEDS(tutti_comm_init_rank(&part, 1, id, 0));
  SUCCEEDS(tutti_barrier(part, NULL));
  SUCCEEDS(tutti_comm_destroy(part));
  end_child();
}

void a_forked_child_is_refused(tutti_comm_t world, int rank, int size) {
  struct parents of = {world, NULL, NULL, NULL};
  int buffer[8];
  (void)rank;
  (void)size;
  SUCCEEDS(tutti_memory_allocate(world, 100, &of.memory));
  SUCCEEDS(tutti_comm_register(world, buffer, sizeof buffer, &of.registration));
  SUCCEEDS(tutti_start_barrier(world, NULL, &of.work));
  in_child(call_in_child, &of);
  SUCCEEDS(tutti_work_wait(of.work));
  SUCCEEDS(tutti_work_free(of.work));
  SUCCEEDS(tutti_barrier(world, NULL));
  SUCCEEDS(tutti_memory_free(of.memory));
  SUCCEEDS(tutti_comm_deregister(world, of.registration));
}

void a_finalized_communicator_is_refused(tutti_comm_t world, int rank, int size) {
  int count = 0;
  (void)rank;
  (void)size;
  SUCCEEDS(tutti_barrier(world, NULL));
  SUCCEEDS(tutti_comm_finalize(world));
  FAILS(tutti_barrier(world, NULL), TUTTI_INVALID_USAGE, "tutti_barrier: the communicator was finalized");
  FAILS(tutti_comm_count(world, &count), TUTTI_INVALID_USAGE, "was finalized");
  FAILS(tutti_comm_finalize(world), TUTTI_INVALID_USAGE, "was finalized");
  EXPECT(tutti_last_error_code(world) == TUTTI_ERROR_UNSUPPORTED);
}
