/* Ranks that leave while another one is late: they wait for nobody, and the late one gets what they owed it. */
#define _POSIX_C_SOURCE 200809L
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "program.h"

enum { kOfJob = 3, kEndWithinMs = 15000, kSoonMs = 4000 };

struct leaver {
  const char* transport;
  int rank, late;
  int finalizes; /* before it destroys */
  char* folder;  /* of the store; null: by id */
  int gate[2];   /* a pipe that the parent closes when the others have ended */
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

/* Not in the library. If the others waited for this rank, the gate would stay closed. */
static void wait_at_gate(const struct leaver* self) {
  struct pollfd gate = {0, POLLIN, 0};
  char none;
  gate.fd = self->gate[0];
  EXPECT(poll(&gate, 1, kEndWithinMs) == 1 && read(gate.fd, &none, 1) == 0);
}

static void leave(void* argument) {
  const struct leaver* const self = argument;
  const int is_late = self->rank == self->late;
  int value = 1;
  int64_t begin;
  tutti_comm_t world = NULL, part = NULL;
  close(self->gate[1]);
  join_as(self, &world);
  if (world == NULL) return;
  SUCCEEDS(tutti_comm_split(world, 0, 0, &part));
  SUCCEEDS(tutti_all_reduce(&value, &value, 1, TUTTI_INT32, TUTTI_SUM, part, NULL));
  owe(world, self); /* the first message of two ranks needs both */
  SUCCEEDS(tutti_barrier(world, NULL));
  begin = now_ms();
  if (is_late) wait_at_gate(self);
  owe(world, self);
  EXPECT(is_late || now_ms() - begin < kSoonMs);
  begin = now_ms();
  if (is_late) { /* what they do not do any more ends soon, and says so */
    FAILS(tutti_all_reduce(&value, &value, 1, TUTTI_INT32, TUTTI_SUM, part, NULL), TUTTI_INVALID_USAGE,
          "before it left");
    EXPECT(now_ms() - begin < kSoonMs);
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
      self.transport = transport;
      self.late = late;
      self.finalizes = by_store;
      self.folder = by_store ? folder : NULL;
      EXPECT(mkdtemp(folder) != NULL);
      EXPECT(pipe(self.gate) == 0);
      SUCCEEDS(tutti_get_unique_id(&self.id));
      for (self.rank = 0; self.rank < kOfJob; ++self.rank) children[self.rank] = start_child(leave, &self);
      for (self.rank = 0; self.rank < kOfJob; ++self.rank)
        if (self.rank != late) wait_for(children[self.rank]); /* a process that has left may end, too */
      close(self.gate[1]);
      wait_for(children[late]);
      close(self.gate[0]);
      remove_folder(folder);
    }
}
