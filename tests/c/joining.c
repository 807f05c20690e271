/* Where and how ranks meet, and what is refused there. */
#define _POSIX_C_SOURCE 200809L
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "program.h"

/* --- two communicators of one process at a time */

static tutti_unique_id ids[2];

static void join_both(void* rank) {
  const tutti_config_t config = config_for("auto");
  const int self = *(int*)rank;
  tutti_comm_t first = NULL, second = NULL;
  double value = self + 1;
  SUCCEEDS(tutti_comm_init_rank_config(&second, 2, ids[1], self, &config));
  SUCCEEDS(tutti_comm_init_rank_config(&first, 2, ids[0], 1 - self, &config)); /* the other way round */
  SUCCEEDS(tutti_all_reduce(&value, &value, 1, TUTTI_FLOAT64, TUTTI_SUM, first, NULL));
  SUCCEEDS(tutti_all_reduce(&value, &value, 1, TUTTI_FLOAT64, TUTTI_PROD, second, NULL));
  EXPECT(value == 9);
  SUCCEEDS(tutti_comm_destroy(first));
  SUCCEEDS(tutti_comm_destroy(second));
}

void join_by_two_ids(void) {
  int zero = 0, one = 1;
  pid_t other;
  SUCCEEDS(tutti_get_unique_id(&ids[0]));
  SUCCEEDS(tutti_get_unique_id(&ids[1]));
  EXPECT(memcmp(&ids[0], &ids[1], sizeof ids[0]) != 0);
  other = start_child(join_both, &one);
  in_child(join_both, &zero);
  wait_for(other);
}

/* --- through a store: files of a folder */

static int set_file(void* user, const char* key, const void* value, size_t bytes) {
  char path[512], whole[512];
  FILE* file;
  const char* at;
  size_t end;
  int failed;
  snprintf(path, sizeof path, "%s/", (const char*)user);
  end = strlen(path);
  for (at = key; *at != '\0'; ++at) path[end++] = *at == '/' ? '-' : *at;
  path[end] = '\0';
  snprintf(whole, sizeof whole, "%.500s.part", path);
  file = fopen(whole, "wb");
  if (file == NULL) return 1;
  failed = fwrite(value, 1, bytes, file) != bytes;
  failed |= fclose(file) != 0;
  return failed | (rename(whole, path) != 0);
}

static int get_file(void* user, const char* key, void* value, size_t capacity, size_t* bytes, int64_t timeout_ms) {
  char path[512];
  const char* at;
  size_t end;
  int64_t waited;
  snprintf(path, sizeof path, "%s/", (const char*)user);
  end = strlen(path);
  for (at = key; *at != '\0'; ++at) path[end++] = *at == '/' ? '-' : *at;
  path[end] = '\0';
  for (waited = 0; waited < timeout_ms; waited += 5) {
    FILE* const file = fopen(path, "rb");
    if (file != NULL) {
      *bytes = fread(value, 1, capacity, file);
      fclose(file);
      return 0;
    }
    sleep_ms(5);
  }
  return 1;
}

/* Under a lock of the folder. */
static int add_to_file(void* user, const char* key, int64_t delta, int64_t* sum) {
  char lock[512];
  size_t bytes = 0;
  int waited, failed;
  *sum = 0;
  snprintf(lock, sizeof lock, "%s/lock", (const char*)user);
  for (waited = 0; mkdir(lock, 0700) != 0; ++waited, sleep_ms(1))
    if (waited > 5000) return 1;
  (void)get_file(user, key, sum, sizeof *sum, &bytes, 1); /* fails where there is none yet */
  *sum += delta;
  failed = set_file(user, key, sum, sizeof *sum);
  return failed | (rmdir(lock) != 0);
}

tutti_store_t store_in(char* folder, int adds) {
  tutti_store_t store;
  store.user = folder;
  store.set = set_file;
  store.get = get_file;
  store.add = adds ? add_to_file : NULL;
  return store;
}

void remove_folder(const char* folder) {
  char command[100];
  snprintf(command, sizeof command, "rm -r %s", folder);
  EXPECT(system(command) == 0);
}

static char folder[] = "/tmp/tutti-c-test-XXXXXX";

static void join_through_folder(void* rank) {
  const int self = *(int*)rank;
  tutti_store_t store = store_in(folder, 0);
  tutti_comm_t world = NULL;
  double value = self + 1;
  const tutti_config_t config = config_for(NULL);
  SUCCEEDS(tutti_comm_init_store(&world, 2, self, store, &config));
  SUCCEEDS(tutti_all_reduce(&value, &value, 1, TUTTI_FLOAT64, TUTTI_SUM, world, NULL));
  EXPECT(value == 3);
  SUCCEEDS(tutti_comm_destroy(world));
}

void join_by_store(void) {
  int zero = 0, one = 1;
  pid_t other;
  tutti_store_t store = {NULL, NULL, NULL, NULL};
  tutti_comm_t world;
  tutti_config_t config = config_for(NULL);
  EXPECT(mkdtemp(folder) != NULL);
  other = start_child(join_through_folder, &one);
  in_child(join_through_folder, &zero);
  wait_for(other);
  FAILS(tutti_comm_init_store(&world, 2, 0, store, NULL), TUTTI_INVALID_ARGUMENT, "store.set is null");
  store.set = set_file;
  store.get = get_file;
  store.user = "/no/such/folder";
  config.join_timeout_ms = 50;
  FAILS(tutti_comm_init_store(&world, 2, 0, store, &config), TUTTI_SYSTEM_ERROR, "has failed to set tutti/1/address");
  FAILS(tutti_comm_init_store(&world, 2, 1, store, &config), TUTTI_SYSTEM_ERROR, "has failed to set tutti/1/host/1");
  remove_folder(folder);
}

/* One join after the other, also in other processes, through one store that can add. */

static void join_several_times(void* rank) {
  const int self = *(int*)rank;
  tutti_store_t store = store_in(folder, 1);
  tutti_config_t config = config_for(NULL);
  int round;
  for (round = 0; round < 3; ++round) {
    tutti_comm_t world = NULL;
    int value = self + 1;
    if (self == 0) sleep_ms(50); /* the others look for what it says while only an earlier join has said it */
    if (round == 1) {            /* this one fails, on both ranks */
      config.transport = self == 0 ? "tcp" : "shm";
      FAILS(tutti_comm_init_store(&world, 2, self, store, &config), TUTTI_INVALID_ARGUMENT, "TUTTI_TRANSPORT");
      EXPECT(strstr(tutti_last_error(NULL), "earlier join") == NULL);
      config.transport = NULL;
      continue;
    }
    SUCCEEDS(tutti_comm_init_store(&world, 2, self, store, &config));
    if (world == NULL) return;
    SUCCEEDS(tutti_all_reduce(&value, &value, 1, TUTTI_INT32, TUTTI_SUM, world, NULL));
    EXPECT(value == 3);
    SUCCEEDS(tutti_comm_destroy(world));
  }
}

/* A rank alone: the other one has not begun its third join. */
static void join_once_more(void* rank) {
  tutti_store_t store = store_in(folder, 1);
  tutti_comm_t world = NULL;
  tutti_config_t config = config_for(NULL);
  config.join_timeout_ms = 100;
  FAILS(tutti_comm_init_store(&world, 2, *(int*)rank, store, &config), TUTTI_REMOTE_ERROR, "join 7 of rank 1");
  store.user = "/no/such/folder";
  FAILS(tutti_comm_init_store(&world, 2, 1, store, &config), TUTTI_SYSTEM_ERROR,
        "store has failed to add to tutti/joins/1");
}

void join_by_store_that_adds(void) {
  int zero = 0, one = 1, round;
  EXPECT(mkdtemp(folder) != NULL);
  for (round = 0; round < 2; ++round) {
    const pid_t other = start_child(join_several_times, &one);
    in_child(join_several_times, &zero);
    wait_for(other);
  }
  in_child(join_once_more, &one);
  remove_folder(folder);
}

/* Without add, rank 1 finds in the store where rank 0 of an earlier job has listened. */
static void join_by_stale_keys(void* rank) {
  tutti_store_t store = store_in(folder, 0);
  tutti_comm_t world = NULL;
  tutti_config_t config = config_for(NULL);
  config.join_timeout_ms = 300;
  FAILS(tutti_comm_init_store(&world, 2, *(int*)rank, store, &config), TUTTI_REMOTE_ERROR,
        "it still holds the keys of an earlier join (tutti/1/...)");
}

void join_by_store_with_stale_keys(void) {
  int zero = 0, one = 1;
  pid_t other;
  EXPECT(mkdtemp(folder) != NULL);
  other = start_child(join_through_folder, &one);
  in_child(join_through_folder, &zero);
  wait_for(other);
  in_child(join_by_stale_keys, &one);
  in_child(join_by_stale_keys, &zero);
  remove_folder(folder);
}

/* --- ids that are none, or are used up */

static void join_elsewhere(void* id) {
  tutti_comm_t world;
  FAILS(tutti_comm_init_rank(&world, 2, *(tutti_unique_id*)id, 0), TUTTI_INVALID_USAGE,
        "rank 0 must join in the process that made the unique id");
}

static void make_elsewhere(void* fd) {
  tutti_unique_id id;
  SUCCEEDS(tutti_get_unique_id(&id));
  EXPECT(write(*(int*)fd, &id, sizeof id) == (long)sizeof id);
}

void refuse_wrong_ids(void) {
  tutti_unique_id id, wrong;
  tutti_comm_t world = NULL;
  tutti_config_t config = config_for(NULL);
  int pipe_ends[2];
  double value = 7;
  SUCCEEDS(tutti_get_unique_id(&id));
  memset(&wrong, 0, sizeof wrong);
  FAILS(tutti_comm_init_rank(&world, 2, wrong, 1), TUTTI_INVALID_ARGUMENT, "has only zeros");
  memset(&wrong, 'x', sizeof wrong);
  FAILS(tutti_comm_init_rank(&world, 2, wrong, 1), TUTTI_INVALID_ARGUMENT, "was not made by tutti_get_unique_id()");
  wrong = id;
  wrong.bytes[4] = 9;
  FAILS(tutti_comm_init_rank(&world, 2, wrong, 1), TUTTI_INVALID_ARGUMENT, "has version 9");
  wrong = id;
  wrong.bytes[60] ^= 1;
  FAILS(tutti_comm_init_rank(&world, 2, wrong, 1), TUTTI_INVALID_ARGUMENT, "was damaged on its way");
  FAILS(tutti_comm_init_rank(&world, 2, id, 2 - 3), TUTTI_INVALID_ARGUMENT, "rank -1");
  FAILS(tutti_comm_init_rank(&world, 0, id, 0), TUTTI_INVALID_ARGUMENT, "the world size is 0");
  FAILS(tutti_comm_init_rank(NULL, 1, id, 0), TUTTI_INVALID_ARGUMENT, "comm is null");
  EXPECT(tutti_last_error_code(NULL) == TUTTI_ERROR_INVALID_ARGUMENT);

  /* None of that has used it up. */
  SUCCEEDS(tutti_comm_init_rank(&world, 1, id, 0));
  SUCCEEDS(tutti_all_reduce(&value, &value, 1, TUTTI_FLOAT64, TUTTI_SUM, world, NULL));
  EXPECT(value == 7);
  SUCCEEDS(tutti_comm_destroy(world));
  FAILS(tutti_comm_init_rank(&world, 1, id, 0), TUTTI_INVALID_USAGE, "has joined with this unique id before");
  EXPECT(world == NULL && tutti_last_error_code(NULL) == TUTTI_ERROR_UNSUPPORTED);

  /* Of another process, which is gone. */
  EXPECT(pipe(pipe_ends) == 0);
  in_child(make_elsewhere, &pipe_ends[1]);
  EXPECT(read(pipe_ends[0], &id, sizeof id) == (long)sizeof id);
  in_child(join_elsewhere, &id);
  config.join_timeout_ms = 300;
  FAILS(tutti_comm_init_rank_config(&world, 2, id, 1, &config), TUTTI_REMOTE_ERROR, "rank 0 could not be reached");
  EXPECT(tutti_last_error_code(NULL) == TUTTI_ERROR_UNREACHABLE);
}

void refuse_wrong_configs(void) {
  tutti_unique_id id;
  tutti_comm_t world = NULL;
  tutti_config_t config = TUTTI_CONFIG_INITIALIZER;
  SUCCEEDS(tutti_get_unique_id(&id));
  config.size = 8;
  FAILS(tutti_comm_init_rank_config(&world, 1, id, 0, &config), TUTTI_INVALID_ARGUMENT, "TUTTI_CONFIG_INITIALIZER");
  config = config_for("pigeons");
  FAILS(tutti_comm_init_rank_config(&world, 1, id, 0, &config), TUTTI_INVALID_ARGUMENT, "pigeons");
  config = config_for(NULL);
  config.timeout_ms = -5;
  FAILS(tutti_comm_init_rank_config(&world, 1, id, 0, &config), TUTTI_INVALID_ARGUMENT, "config.timeout_ms is -5");
  config = config_for(NULL);
  config.order = 2;
  FAILS(tutti_comm_init_rank_config(&world, 1, id, 0, &config), TUTTI_INVALID_ARGUMENT, "config.order is 2");
  config = config_for(NULL);
  config.port_first = 70000;
  FAILS(tutti_comm_init_rank_config(&world, 1, id, 0, &config), TUTTI_INVALID_ARGUMENT, "config.port_first is 70000");
  config = config_for(NULL);
  config.order = TUTTI_ORDER_ANY;
  SUCCEEDS(tutti_comm_init_rank_config(&world, 1, id, 0, &config));
  SUCCEEDS(tutti_comm_destroy(world));
}
