/* The same from C: every rank brings four numbers, starts their sum, and meanwhile does something else. */
#include <stdio.h>
#include <tutti/tutti.h>

static int fail(const char* what) {
  fprintf(stderr, "%s: %s\n", what, tutti_last_error(NULL));
  return 1;
}

int main(void) {
  tutti_comm_t world;
  tutti_work_t work;
  int rank, size, i;
  float values[4], largest[1];

  if (tutti_comm_init_env(&world) != TUTTI_SUCCESS) return fail("joining");
  tutti_comm_rank(world, &rank);
  tutti_comm_count(world, &size);

  for (i = 0; i < 4; ++i) values[i] = 1.0f / (float)(1 + rank);
  if (tutti_start_all_reduce(values, values, 4, TUTTI_FLOAT32, TUTTI_SUM, world, NULL, &work) != TUTTI_SUCCESS)
    return fail("starting");
  largest[0] = (float)(rank * rank); /* values must stay untouched until the work is over */
  if (tutti_work_wait(work) != TUTTI_SUCCESS) return fail("waiting");
  tutti_work_free(work);

  if (tutti_all_reduce(largest, largest, 1, TUTTI_FLOAT32, TUTTI_MAX, world, NULL) != TUTTI_SUCCESS)
    return fail("the largest");
  printf("rank %d of %d: the sum is %.9g, the largest is %g\n", rank, size, values[0], largest[0]);

  if (tutti_comm_finalize(world) != TUTTI_SUCCESS) return fail("leaving"); /* did all ranks make the same calls? */
  tutti_comm_destroy(world);
  return 0;
}
