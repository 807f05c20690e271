/* program CASE [TRANSPORT]: runs a case of the tests, and exits with 0 if all was as it should be. */
#define _POSIX_C_SOURCE 200809L
#include "program.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static int failures = 0;

void expect(int is_so, const char* what, const char* file, int line) {
  if (is_so) return;
  ++failures;
  fprintf(stderr, "%s:%d: not so: %s\n", file, line, what);
}

void expect_result(tutti_result_t result, tutti_result_t expected, const char* words, const char* what,
                   const char* file, int line) {
  const char* const said = tutti_last_error(NULL);
  if (result == expected && (result == TUTTI_SUCCESS || strstr(said, words) != NULL)) return;
  ++failures;
  fprintf(stderr, "%s:%d: %s: %s (%s)\n", file, line, what, tutti_result_text(result), said);
}

void sleep_ms(int milliseconds) {
  struct timespec time;
  time.tv_sec = milliseconds / 1000;
  time.tv_nsec = (long)(milliseconds % 1000) * 1000000;
  nanosleep(&time, NULL);
}

int64_t now_ms(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (int64_t)time.tv_sec * 1000 + time.tv_nsec / 1000000;
}

tutti_config_t config_for(const char* transport) {
  tutti_config_t config = TUTTI_CONFIG_INITIALIZER;
  config.transport = transport;
  config.join_timeout_ms = 20000;
  config.timeout_ms = 20000;
  return config;
}

pid_t start_child(void (*body)(void*), void* argument) {
  pid_t child;
  fflush(NULL);
  child = fork();
  if (child != 0) return child;
  failures = 0;
  body(argument);
  exit(failures == 0 ? 0 : 1);
}

void end_child(void) { _exit(failures == 0 ? 0 : 1); }

void wait_for(pid_t child) {
  int status = 0;
  EXPECT(waitpid(child, &status, 0) == child);
  EXPECT(status == 0 || (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL)); /* a rank that ends itself */
}

void in_child(void (*body)(void*), void* argument) { wait_for(start_child(body, argument)); }

struct rank {
  const char* transport;
  int rank, size;
  tutti_unique_id id;
  rank_body body;
};

static void be_rank(void* argument) {
  struct rank* const self = argument;
  const tutti_config_t config = config_for(self->transport);
  tutti_comm_t world = NULL;
  int rank = -1, size = -1;
  SUCCEEDS(tutti_comm_init_rank_config(&world, self->size, self->id, self->rank, &config));
  if (world == NULL) return;
  SUCCEEDS(tutti_comm_rank(world, &rank));
  SUCCEEDS(tutti_comm_count(world, &size));
  EXPECT(rank == self->rank && size == self->size);
  self->body(world, rank, size);
  SUCCEEDS(tutti_comm_destroy(world));
}

void run_ranks(const char* transport, int size, rank_body body) {
  struct rank self;
  pid_t children[8];
  self.transport = transport;
  self.size = size;
  self.body = body;
  SUCCEEDS(tutti_get_unique_id(&self.id));
  for (self.rank = 0; self.rank < size; ++self.rank) children[self.rank] = start_child(be_rank, &self);
  for (self.rank = 0; self.rank < size; ++self.rank) wait_for(children[self.rank]);
}

static void run_by_environment(void) {
  tutti_comm_t world = NULL;
  int rank = -1, size = -1;
  SUCCEEDS(tutti_comm_init_env(&world));
  if (world == NULL) return;
  SUCCEEDS(tutti_comm_rank(world, &rank));
  SUCCEEDS(tutti_comm_count(world, &size));
  all_collectives(world, rank, size);
  SUCCEEDS(tutti_comm_finalize(world));
  SUCCEEDS(tutti_comm_destroy(world));
  printf("rank %d of %d is done\n", rank, size);
}

static const struct {
  const char* name;
  rank_body body;
} rank_cases[] = {
    {"all_collectives", all_collectives},
    {"all_types", all_types},
    {"started_calls", started_calls},
    {"scans", scans},
    {"algorithms_and_orders", algorithms_and_orders},
    {"other_orders_are_a_mismatch", other_orders_are_a_mismatch},
    {"choices_are_told", choices_are_told},
    {"parts_and_memory", parts_and_memory},
    {"refuse_wrong_numbers", refuse_wrong_numbers},
    {"both_hear_of_a_mismatch", both_hear_of_a_mismatch},
    {"an_abort_reaches_all", an_abort_reaches_all},
    {"a_lost_rank_is_told_without_a_call", a_lost_rank_is_told_without_a_call},
    {"a_forked_child_is_refused", a_forked_child_is_refused},
    {"a_finalized_communicator_is_refused", a_finalized_communicator_is_refused},
    {"works_are_told_of", works_are_told_of},
    {"works_time_out", works_time_out},
    {"works_time_out_by_their_own_timeout", works_time_out_by_their_own_timeout},
    {"sends_and_groups", sends_and_groups},
};
static const struct {
  const char* name;
  void (*body)(const char* transport);
} wire_cases[] = {
    {"one_thread_has_all_ranks", one_thread_has_all_ranks},
    {"two_processes_have_two_ranks_each", two_processes_have_two_ranks_each},
    {"joins_and_calls_in_one_group", joins_and_calls_in_one_group},
    {"one_thread_splits_all_ranks", one_thread_splits_all_ranks},
    {"groups_of_some_ranks", groups_of_some_ranks},
    {"fifty_groups", fifty_groups},
    {"leaving_waits_for_nobody", leaving_waits_for_nobody},
    {"groups_begin_as_their_communicator", groups_begin_as_their_communicator},
};
static const struct {
  const char* name;
  void (*body)(void);
} cases[] = {
    {"environment", run_by_environment},
    {"join_by_two_ids", join_by_two_ids},
    {"join_by_store", join_by_store},
    {"join_by_environment_and_config", join_by_environment_and_config},
    {"refuse_wrong_ids", refuse_wrong_ids},
    {"refuse_wrong_configs", refuse_wrong_configs},
    {"join_by_store_that_adds", join_by_store_that_adds},
    {"join_by_store_with_stale_keys", join_by_store_with_stale_keys},
    {"refuse_nulls", refuse_nulls},
    {"refuse_wrong_groups", refuse_wrong_groups},
};

int main(int argc, char** argv) {
  size_t i;
  int found = 0, size;
  for (i = 0; argc == 2 && i < sizeof cases / sizeof *cases; ++i)
    if (strcmp(argv[1], cases[i].name) == 0) ++found, cases[i].body();
  for (i = 0; argc == 3 && i < sizeof rank_cases / sizeof *rank_cases; ++i)
    if (strcmp(argv[1], rank_cases[i].name) == 0)
      for (size = 2; size <= 3; ++size) ++found, run_ranks(argv[2], size, rank_cases[i].body);
  for (i = 0; argc == 3 && i < sizeof wire_cases / sizeof *wire_cases; ++i)
    if (strcmp(argv[1], wire_cases[i].name) == 0) ++found, wire_cases[i].body(argv[2]);
  EXPECT(found > 0);
  return failures == 0 ? 0 : 1;
}
