/* Joins and splits of a group: one thread has several ranks. */
#include <stdio.h>
#include <unistd.h>

#include "program.h"

enum { kMost = 4, kElements = 3000 };

static void destroy_all(tutti_comm_t* comms, int count) {
  int i;
  for (i = 0; i < count; ++i) SUCCEEDS(tutti_comm_destroy(comms[i]));
}

/* Ranks [first, first + count) of `size` join on this thread. */
static tutti_result_t join(tutti_comm_t* comms, const char* transport, int size, tutti_unique_id id, int first,
                           int count) {
  char name[16];
  tutti_config_t config;
  int i;
  SUCCEEDS(tutti_group_start());
  for (i = 0; i < count; ++i) {
    snprintf(name, sizeof name, "%s", transport);
    config = config_for(name);
    comms[i] = (tutti_comm_t)name; /* not looked at */
    SUCCEEDS(tutti_comm_init_rank_config(&comms[i], size, id, first + i, &config));
    EXPECT(comms[i] == NULL);
    name[0] = '?'; /* it was copied */
  }
  return tutti_group_end();
}

/* Each rank adds its number plus one, in place or not. */
static void sum_up(tutti_comm_t* comms, int first, int count, int size) {
  static int in[kMost][kElements], out[kMost][kElements];
  int i, k, rank, right = 1;
  SUCCEEDS(tutti_group_start());
  for (i = 0; i < count; ++i) {
    for (k = 0; k < kElements; ++k) in[i][k] = (first + i + 1) * (k + 1);
    SUCCEEDS(tutti_comm_rank(comms[i], &rank));
    EXPECT(rank == first + i);
    SUCCEEDS(tutti_all_reduce(in[i], i % 2 ? in[i] : out[i], kElements, TUTTI_INT32, TUTTI_SUM, comms[i], NULL));
  }
  SUCCEEDS(tutti_group_end());
  for (i = 0; i < count; ++i)
    for (k = 0; k < kElements; ++k) right = right && (i % 2 ? in : out)[i][k] == size * (size + 1) / 2 * (k + 1);
  EXPECT(right);
}

void one_thread_has_all_ranks(const char* transport) {
  tutti_unique_id id;
  tutti_comm_t comms[kMost];
  int size;
  for (size = 1; size <= kMost; ++size) {
    SUCCEEDS(tutti_get_unique_id(&id));
    SUCCEEDS(join(comms, transport, size, id, 0, size));
    sum_up(comms, 0, size, size);
    destroy_all(comms, size);
  }
}

struct half {
  const char* transport;
  tutti_unique_id id;
  int first;
};

static void be_half(void* argument) {
  const struct half* const self = argument;
  tutti_comm_t comms[2];
  SUCCEEDS(join(comms, self->transport, 4, self->id, self->first, 2));
  sum_up(comms, self->first, 2, 4);
  destroy_all(comms, 2);
}

void two_processes_have_two_ranks_each(const char* transport) {
  struct half half;
  pid_t children[2];
  half.transport = transport;
  SUCCEEDS(tutti_get_unique_id(&half.id));
  half.first = 0;
  children[0] = start_child(be_half, &half);
  half.first = 2;
  children[1] = start_child(be_half, &half);
  wait_for(children[0]);
  wait_for(children[1]);
}

/* The inner end joins nobody; a call of the group is made after the joins, of communicators that there are already. */
void joins_and_calls_in_one_group(const char* transport) {
  tutti_unique_id ids[2];
  tutti_comm_t old[2], made[2];
  int values[2] = {1, 2}, i;
  SUCCEEDS(tutti_get_unique_id(&ids[0]));
  SUCCEEDS(tutti_get_unique_id(&ids[1]));
  SUCCEEDS(join(old, transport, 2, ids[0], 0, 2));
  SUCCEEDS(tutti_group_start());
  SUCCEEDS(tutti_all_reduce(&values[0], &values[0], 1, TUTTI_INT32, TUTTI_SUM, old[0], NULL));
  SUCCEEDS(join(made, transport, 2, ids[1], 0, 2));
  EXPECT(made[0] == NULL && made[1] == NULL);
  FAILS(tutti_all_reduce(&values[0], &values[0], 1, TUTTI_INT32, TUTTI_SUM, made[0], NULL), TUTTI_INVALID_ARGUMENT,
        "comm is null");
  SUCCEEDS(tutti_all_reduce(&values[1], &values[1], 1, TUTTI_INT32, TUTTI_SUM, old[1], NULL));
  EXPECT(values[0] == 1 && values[1] == 2);
  SUCCEEDS(tutti_group_end());
  EXPECT(values[0] == 3 && values[1] == 3);
  for (i = 0; i < 2; ++i) EXPECT(made[i] != NULL);
  sum_up(made, 0, 2, 2);
  destroy_all(made, 2);
  destroy_all(old, 2);
}

/* Evens and odds; then all again, in the reverse order, in the same group. */
void one_thread_splits_all_ranks(const char* transport) {
  tutti_unique_id id;
  tutti_comm_t comms[kMost], parts[kMost], back[kMost], none[kMost], evens[2], odds[2];
  int i, rank, count;
  SUCCEEDS(tutti_get_unique_id(&id));
  SUCCEEDS(join(comms, transport, kMost, id, 0, kMost));
  SUCCEEDS(tutti_group_start());
  for (i = 0; i < kMost; ++i) {
    SUCCEEDS(tutti_comm_split(comms[i], i % 2, i, &parts[i]));
    SUCCEEDS(tutti_comm_split(comms[i], -1, 0, &none[i]));
    SUCCEEDS(tutti_comm_split(comms[i], 7, -i, &back[i]));
    EXPECT(parts[i] == NULL && back[i] == NULL);
  }
  SUCCEEDS(tutti_group_end());
  for (i = 0; i < kMost; ++i) {
    EXPECT(none[i] == NULL);
    SUCCEEDS(tutti_comm_rank(back[i], &rank));
    EXPECT(rank == kMost - 1 - i);
    SUCCEEDS(tutti_comm_count(parts[i], &count));
    EXPECT(count == 2);
    (i % 2 ? odds : evens)[i / 2] = parts[i];
  }
  sum_up(evens, 0, 2, 2);
  sum_up(odds, 0, 2, 2);
  sum_up(comms, 0, kMost, kMost);
  destroy_all(parts, kMost);
  destroy_all(comms, kMost);
  destroy_all(back, kMost);
}

/* --- what goes wrong */

/* Rank 1 believes in three ranks: it and rank 0 are told. The group of another job that joins well is undone too. */
static void be_a_wrong_group(tutti_unique_id* ids) {
  tutti_comm_t comms[3];
  tutti_config_t config = config_for("auto");
  int value = 5, sum = 0;
  SUCCEEDS(tutti_group_start());
  SUCCEEDS(tutti_comm_init_rank_config(&comms[0], 2, ids[0], 0, &config));
  SUCCEEDS(tutti_comm_init_rank_config(&comms[1], 3, ids[0], 1, &config));
  SUCCEEDS(tutti_comm_init_rank_config(&comms[2], 1, ids[1], 0, &config));
  FAILS(tutti_group_end(), TUTTI_INVALID_ARGUMENT, "world size");
  EXPECT(comms[0] == NULL && comms[1] == NULL && comms[2] == NULL);
  EXPECT(tutti_last_error_code(NULL) == TUTTI_ERROR_INVALID_ARGUMENT);

  /* The calls of such a group are not made. */
  SUCCEEDS(tutti_comm_init_rank_config(&comms[0], 1, ids[2], 0, &config));
  config.join_timeout_ms = 200;
  SUCCEEDS(tutti_group_start());
  SUCCEEDS(tutti_all_reduce(&value, &sum, 1, TUTTI_INT32, TUTTI_SUM, comms[0], NULL));
  SUCCEEDS(tutti_comm_init_rank_config(&comms[2], 2, ids[3], 0, &config));
  FAILS(tutti_group_end(), TUTTI_REMOTE_ERROR, "rank 1");
  EXPECT(comms[2] == NULL && sum == 0);
  SUCCEEDS(tutti_comm_destroy(comms[0]));
}

void refuse_wrong_groups(void) {
  tutti_unique_id ids[4], wrong;
  tutti_comm_t comms[2];
  tutti_config_t config = config_for("auto");
  int i;
  for (i = 0; i < 4; ++i) SUCCEEDS(tutti_get_unique_id(&ids[i]));
  be_a_wrong_group(ids);

  /* Wrong arguments are refused at once, and the group goes on without them. */
  SUCCEEDS(tutti_get_unique_id(&ids[0]));
  wrong = ids[0];
  wrong.bytes[60] ^= 1;
  SUCCEEDS(tutti_group_start());
  FAILS(tutti_comm_init_rank_config(&comms[1], 2, wrong, 1, &config), TUTTI_INVALID_ARGUMENT, "damaged");
  FAILS(tutti_comm_init_rank_config(NULL, 2, ids[0], 1, &config), TUTTI_INVALID_ARGUMENT, "comm is null");
  FAILS(tutti_comm_init_rank_config(&comms[1], 0, ids[0], 1, &config), TUTTI_INVALID_ARGUMENT, "world size");
  FAILS(tutti_comm_split(NULL, 0, 0, &comms[1]), TUTTI_INVALID_ARGUMENT, "comm is null");
  SUCCEEDS(tutti_comm_init_rank_config(&comms[0], 1, ids[0], 0, &config));
  SUCCEEDS(tutti_group_end());
  EXPECT(comms[0] != NULL && comms[1] == NULL);
  SUCCEEDS(tutti_comm_destroy(comms[0]));
}
