/* Scans; and how calls are done: the algorithm, the order, what the environment and a configuration say together. */
#include <string.h>

#include "program.h"

enum { kTerms = 3000 };

/* The sum over the ranks [0, ranks) of what rank r has at i: r * 10 + i % 7. */
static int64_t sum_of_first(int ranks, size_t i) {
  return (int64_t)ranks * (ranks - 1) / 2 * 10 + (int64_t)ranks * (int64_t)(i % 7);
}

static void fill_terms(int64_t* values, int rank) {
  size_t i;
  for (i = 0; i < kTerms; ++i) values[i] = rank * 10 + (int64_t)(i % 7);
}

static int are_sums_of_first(const int64_t* values, int ranks) {
  size_t i;
  for (i = 0; i < kTerms; ++i)
    if (values[i] != sum_of_first(ranks, i)) return 0;
  return 1;
}

void scans(tutti_comm_t world, int rank, int size) {
  static int64_t in[kTerms], out[kTerms], before[kTerms];
  tutti_work_t works[2] = {NULL, NULL};
  int64_t mine = 6 * (rank + 1), mean = -1;
  fill_terms(in, rank);
  SUCCEEDS(tutti_scan(in, out, kTerms, TUTTI_INT64, TUTTI_SUM, world, NULL));
  EXPECT(are_sums_of_first(out, rank + 1));
  SUCCEEDS(tutti_exclusive_scan(in, rank == 0 ? NULL : before, kTerms, TUTTI_INT64, TUTTI_SUM, world, NULL));
  EXPECT(rank == 0 || are_sums_of_first(before, rank));
  memset(out, -1, sizeof out);
  SUCCEEDS(tutti_start_scan(in, out, kTerms, TUTTI_INT64, TUTTI_SUM, world, NULL, &works[0]));
  SUCCEEDS(tutti_start_exclusive_scan(in, in, kTerms, TUTTI_INT64, TUTTI_SUM, world, NULL, &works[1])); /* in place */
  SUCCEEDS(tutti_work_wait(works[1]));
  SUCCEEDS(tutti_work_free(works[0]));
  SUCCEEDS(tutti_work_free(works[1]));
  EXPECT(are_sums_of_first(out, rank + 1));
  if (rank == 0) fill_terms(out, 0); /* rank 0 keeps its input */
  EXPECT(rank == 0 ? memcmp(in, out, sizeof in) == 0 : are_sums_of_first(in, rank));
  SUCCEEDS(tutti_scan(&mine, &mean, 1, TUTTI_INT64, TUTTI_AVG, world, NULL)); /* divides by the ranks so far */
  EXPECT(mean == 3 * (rank + 2));
  SUCCEEDS(tutti_scan(NULL, NULL, 0, TUTTI_INT8, TUTTI_SUM, world, NULL));
  FAILS(tutti_scan(in, out, 1, 12, TUTTI_SUM, world, NULL), TUTTI_INVALID_ARGUMENT, "scan: dtype is 12");
  FAILS(tutti_start_exclusive_scan(in, out, 1, TUTTI_INT64, TUTTI_SUM, world, NULL, NULL), TUTTI_INVALID_ARGUMENT,
        "work is null");
  FAILS(tutti_exclusive_scan(in, out, 1, TUTTI_INT64, TUTTI_SUM, NULL, NULL), TUTTI_INVALID_ARGUMENT,
        "tutti_exclusive_scan: comm is null");
  (void)size;
}

/* Floats whose sum depends on the order in which they are added. */
static float awkward(int rank, int i) { return (float)(rank % 2 == 0 ? 1e8 : -1e8) + (float)(i * 7 + rank) * 0.37f; }

static void sum_awkward(tutti_comm_t world, int rank, float* sums) {
  float mine[kTerms];
  int i;
  for (i = 0; i < kTerms; ++i) mine[i] = awkward(rank, i);
  SUCCEEDS(tutti_all_reduce(mine, sums, kTerms, TUTTI_FLOAT32, TUTTI_SUM, world, NULL));
}

void algorithms_and_orders(tutti_comm_t world, int rank, int size) {
  static float first[kTerms], second[kTerms];
  const char* const names[] = {"one_shot", "two_shot", "sliced_tree", "recursive_doubling", "binomial_tree"};
  const size_t counts[] = {1, 1}, *const rows = size == 2 ? counts : NULL;
  tutti_comm_t part = NULL;
  int mine = 0, i;
  sum_awkward(world, rank, first);
  for (i = 0; i < 5; ++i) {
    SUCCEEDS(tutti_comm_set_algorithm(world, names[i]));
    sum_awkward(world, rank, second);
    EXPECT(memcmp(first, second, sizeof first) == 0); /* the same bits with every algorithm */
  }
  /* Of the name that all_reduce has and broadcast has not. The call is not made, so the ranks can go on. */
  SUCCEEDS(tutti_comm_set_algorithm(world, "two_shot"));
  FAILS(tutti_broadcast(&mine, &mine, 1, TUTTI_INT32, 0, world, NULL), TUTTI_INVALID_ARGUMENT,
        "broadcast: there is no algorithm two_shot for it");
  FAILS(tutti_comm_set_algorithm(world, "three_shot"), TUTTI_INVALID_ARGUMENT,
        "tutti_comm_set_algorithm: there is no algorithm \"three_shot\"");
  sum_awkward(world, rank, second); /* by two_shot still */
  if (rank == 0) SUCCEEDS(tutti_send(&mine, 1, TUTTI_INT32, 1, world, NULL));
  if (rank == 1) SUCCEEDS(tutti_recv(&mine, 1, TUTTI_INT32, 0, world, NULL));
  SUCCEEDS(tutti_comm_set_algorithm(world, "ring"));
  if (size > 2)
    FAILS(tutti_all_reduce(first, second, kTerms, TUTTI_FLOAT32, TUTTI_SUM, world, NULL), TUTTI_INVALID_ARGUMENT,
          "ring cannot keep the canonical order");
  if (rows != NULL)
    FAILS(tutti_scatter_v(&mine, rows, NULL, &mine, 1, TUTTI_INT32, 0, world, NULL), TUTTI_INVALID_ARGUMENT,
          "there is no algorithm ring");
  SUCCEEDS(tutti_comm_set_order(world, TUTTI_ORDER_ANY));
  SUCCEEDS(tutti_comm_split(world, 0, 0, &part)); /* with the algorithm and the order; itself with its own algorithm */
  for (i = 0; i < kTerms; ++i) first[i] = 2, second[i] = 0;
  SUCCEEDS(tutti_all_reduce(first, second, kTerms, TUTTI_FLOAT32, TUTTI_SUM, part, NULL));
  EXPECT(second[0] == (float)(2 * size) && second[kTerms - 1] == (float)(2 * size));
  FAILS(tutti_barrier(part, NULL), TUTTI_INVALID_ARGUMENT, "barrier: there is no algorithm ring");
  SUCCEEDS(tutti_comm_destroy(part));
  FAILS(tutti_comm_set_order(world, 2), TUTTI_INVALID_ARGUMENT, "tutti_comm_set_order: order is 2");
  FAILS(tutti_comm_set_order(NULL, 0), TUTTI_INVALID_ARGUMENT, "comm is null");
  FAILS(tutti_comm_set_algorithm(NULL, NULL), TUTTI_INVALID_ARGUMENT, "comm is null");
  SUCCEEDS(tutti_comm_set_order(world, TUTTI_ORDER_CANONICAL));
  SUCCEEDS(tutti_comm_set_algorithm(world, NULL));
  SUCCEEDS(tutti_barrier(world, NULL));
}

/* The order is part of a call; the error names one rank, the same to all. */
void other_orders_are_a_mismatch(tutti_comm_t world, int rank, int size) {
  int value = 1, peer;
  (void)size;
  EXPECT(tutti_last_error_peer(world) == -1);
  FAILS(tutti_comm_set_order(world, 7), TUTTI_INVALID_ARGUMENT, "order is 7");
  EXPECT(tutti_last_error_peer(world) == -1 && tutti_last_error_peer(NULL) == -1);
  /* Else a slow rank might hear of the mismatch before it has looked. It may hear of it in this barrier. */
  (void)tutti_barrier(world, NULL);
  if (rank == 0) SUCCEEDS(tutti_comm_set_order(world, TUTTI_ORDER_ANY));
  if (tutti_all_reduce(&value, &value, 1, TUTTI_INT32, TUTTI_SUM, world, NULL) == TUTTI_SUCCESS)
    tutti_barrier(world, NULL);
  FAILS(tutti_barrier(world, NULL), TUTTI_INVALID_USAGE, "the ranks made different calls");
  peer = tutti_last_error_peer(world);
  EXPECT(peer >= 0 && peer < size);
  EXPECT(tutti_last_error_peer(NULL) == peer);
}

void choices_are_told(tutti_comm_t world, int rank, int size) {
  const char *small = NULL, *large = NULL;
  (void)rank;
  (void)size;
  SUCCEEDS(tutti_comm_choose(world, "all_reduce", 1, TUTTI_FLOAT32, &small));
  SUCCEEDS(tutti_comm_choose(world, "all_reduce", 10000000, TUTTI_FLOAT32, &large));
  EXPECT(small != NULL && (strcmp(small, "one_shot") == 0 || strcmp(small, "recursive_doubling") == 0));
  EXPECT(large != NULL && strcmp(large, "two_shot") == 0);
  SUCCEEDS(tutti_comm_set_algorithm(world, large)); /* a name that it takes */
  FAILS(tutti_comm_choose(world, "all_reducing", 1, TUTTI_FLOAT32, &small), TUTTI_INVALID_ARGUMENT,
        "tutti_comm_choose: there is no collective \"all_reducing\"");
  FAILS(tutti_comm_choose(world, "all_reduce", 1, 12, &small), TUTTI_INVALID_ARGUMENT, "dtype is 12");
  FAILS(tutti_comm_choose(world, NULL, 1, TUTTI_INT8, &small), TUTTI_INVALID_ARGUMENT, "collective is null");
  FAILS(tutti_comm_choose(world, "scan", 1, TUTTI_INT8, NULL), TUTTI_INVALID_ARGUMENT, "algorithm is null");
  FAILS(tutti_comm_choose(NULL, "scan", 1, TUTTI_INT8, &small), TUTTI_INVALID_ARGUMENT, "comm is null");
}

static void count_lines(void* user, int level, int rank, const char* text) {
  (void)level;
  (void)rank;
  (void)text;
  ++*(int*)user;
}

/* Without a launcher: a job of one rank. What the configuration says comes before the environment. */
void join_by_environment_and_config(void) {
  tutti_config_t config = TUTTI_CONFIG_INITIALIZER;
  tutti_comm_t world = NULL;
  int lines = 0, count = 0;
  config.log_level = TUTTI_LOG_INFO;
  config.log = count_lines;
  config.log_user = &lines;
  SUCCEEDS(tutti_comm_init_env_config(&world, &config));
  SUCCEEDS(tutti_comm_count(world, &count));
  EXPECT(count == 1 && lines > 0);
  SUCCEEDS(tutti_barrier(world, NULL));
  SUCCEEDS(tutti_comm_destroy(world));
  config.order = 5;
  FAILS(tutti_comm_init_env_config(&world, &config), TUTTI_INVALID_ARGUMENT, "config.order is 5");
  EXPECT(world == NULL);
  FAILS(tutti_comm_init_env_config(NULL, &config), TUTTI_INVALID_ARGUMENT, "comm is null");
}
