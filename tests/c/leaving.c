/* Ranks that leave while another one is late: they wait for nobody, and the late one gets what they owed it. */
#define _POSIX_C_SOURCE 200809L
#include <stdlib.h>
#include <string.h>

#include "program.h"

enum { kOfJob = 3, kLateByMs = 2500, kSoonMs = 900 };

struct leaver {
  const char* transport;
  int rank, late;
  int finalizes; /* before it destroys */
  char* folder;  /* of the store; null: by id */
  tutti_unique_id id;
};

static void join_as(const struct leaver* self, tutti_comm_t* world) {
  const tutti_config_t config = config_for(self->transport);
  if (self->folder == NULL) {
    SUCCEEDS(tutti_comm_init_rank_config(world, kOfJob, self->id, self->rank, &config));
  } else {
    SUCCEEDS(tutti_comm_init_store(world, kOfJob, self->rank, store_in(self->folder, 1), &config));
  }
}

/* Each other rank sends the late one a message, short enough to be left there; one of them broadcasts. */
static void owe(tutti_comm_t world, const struct leaver* self) {
  int peer, value;
  for (peer = 0; peer < kOfJob; ++peer) {
    if (peer == self->late) continue;
    value = self->rank + 10;
    if (self->rank == self->late) SUCCEEDS(tutti_recv(&value, 1, TUTTI_INT32, peer, world, NULL));
    if (self->rank == peer) SUCCEEDS(tutti_send(&value, 1, TUTTI_INT32, self->late, world, NULL));
    if (self->rank == self->late) EXPECT(value == peer + 10);
  }
  value = self->rank + 20;
  SUCCEEDS(tutti_broadcast(&value, &value, 1, TUTTI_INT32, (self->late + 1) % kOfJob, world, NULL));
  EXPECT(value == (self->late + 1) % kOfJob + 20);
}

static void leave(void* argument) {
  const struct leaver* const self = argument;
  const int is_late = self->rank == self->late;
  int value = 1;
  int64_t begin;
  tutti_comm_t world = NULL, part = NULL;
  join_as(self, &world);
  if (world == NULL) return;
  SUCCEEDS(tutti_comm_split(world, 0, 0, &part));
  SUCCEEDS(tutti_all_reduce(&value, &value, 1, TUTTI_INT32, TUTTI_SUM, part, NULL));
  owe(world, self); /* the first message of two ranks needs both */
  SUCCEEDS(tutti_barrier(world, NULL));
  begin = now_ms();
  if (is_late) sleep_ms(kLateByMs); /* not in the library */
  owe(world, self);
  EXPECT(is_late || now_ms() - begin < kSoonMs);
  begin = now_ms();
  if (is_late) { /* what they do not do any more ends soon, and says so */
    FAILS(tutti_all_reduce(&value, &value, 1, TUTTI_INT32, TUTTI_SUM, part, NULL), TUTTI_INVALID_USAGE,
          "before it left");
    EXPECT(now_ms() - begin < 4000);
    begin = now_ms();
  }
  if (self->finalizes && !is_late) SUCCEEDS(tutti_comm_finalize(world));
  SUCCEEDS(tutti_comm_destroy(part));
  SUCCEEDS(tutti_comm_destroy(world));
  EXPECT(now_ms() - begin < kSoonMs);
}

void leaving_waits_for_nobody(const char* transport) {
  int late, by_store;
  for (late = 0; late < 2; ++late)
    for (by_store = 0; by_store < 2; ++by_store) {
      char folder[] = "/tmp/tutti-c-test-XXXXXX";
      struct leaver self;
      pid_t children[kOfJob];
      int64_t begin = 0;
      self.transport = transport;
      self.late = late;
      self.finalizes = by_store;
      self.folder = by_store ? folder : NULL;
      EXPECT(mkdtemp(folder) != NULL);
      SUCCEEDS(tutti_get_unique_id(&self.id));
      for (self.rank = 0; self.rank < kOfJob; ++self.rank) children[self.rank] = start_child(leave, &self);
      begin = now_ms();
      for (self.rank = 0; self.rank < kOfJob; ++self.rank)
        if (self.rank != late) wait_for(children[self.rank]); /* a process that has left may end, too */
      EXPECT(now_ms() - begin < kLateByMs);
      wait_for(children[late]);
      remove_folder(folder);
    }
}
