/* Every collective against plain loops. */
#include <stdlib.h>

#include "ranks.h"

/* What rank `rank` has at `i`: small, so that sums and products of four are exact. */
static double value_of(int rank, size_t i) { return (double)(((size_t)rank * 3 + i) % 5 + 1); }

static double combined(int size, size_t i, ncclRedOp_t op) {
  double all = value_of(0, i);
  int r;
  for (r = 1; r < size; ++r) {
    const double one = value_of(r, i);
    if (op == ncclSum || op == ncclAvg) all += one;
    if (op == ncclProd) all *= one;
    if (op == ncclMax && one > all) all = one;
    if (op == ncclMin && one < all) all = one;
  }
  return op == ncclAvg ? all / size : all;
}

static void fill(double* values, int rank, size_t first, size_t count) {
  size_t i;
  for (i = 0; i < count; ++i) values[i] = value_of(rank, first + i);
}

static int is_of_rank(const double* values, int rank, size_t first, size_t count) {
  size_t i;
  for (i = 0; i < count; ++i)
    if (values[i] != value_of(rank, first + i)) return 0;
  return 1;
}

static int is_combined(const double* values, int size, size_t first, size_t count, ncclRedOp_t op) {
  size_t i;
  for (i = 0; i < count; ++i)
    if (values[i] != combined(size, first + i, op)) return 0;
  return 1;
}

/* `in` and `out` hold size * count elements. */
static void check_reductions(ncclComm_t world, int rank, int size, size_t count, double* in, double* out) {
  const size_t all = (size_t)size * count, mine = (size_t)rank * count;
  int op, root;
  for (op = ncclSum; op < ncclNumOps; ++op) {
    const ncclRedOp_t by = (ncclRedOp_t)op;
    fill(in, rank, 0, all);
    SUCCEEDS(ncclAllReduce(in, out, count, ncclDouble, by, world, NULL));
    EXPECT(is_combined(out, size, 0, count, by));
    SUCCEEDS(ncclReduceScatter(in, out, count, ncclDouble, by, world, NULL));
    EXPECT(is_combined(out, size, mine, count, by));
    for (root = 0; root < size; ++root) {
      SUCCEEDS(ncclReduce(in, rank == root ? out : NULL, count, ncclDouble, by, root, world, NULL));
      EXPECT(rank != root || is_combined(out, size, 0, count, by));
    }
    SUCCEEDS(ncclReduceScatter(in, in + mine, count, ncclDouble, by, world, NULL)); /* in place */
    EXPECT(is_combined(in + mine, size, mine, count, by));
    fill(in, rank, 0, count);
    SUCCEEDS(ncclAllReduce(in, in, count, ncclDouble, by, world, NULL)); /* in place */
    EXPECT(is_combined(in, size, 0, count, by));
  }
}

static void check_moves(ncclComm_t world, int rank, int size, size_t count, double* in, double* out) {
  const size_t all = (size_t)size * count, mine = (size_t)rank * count;
  int root, r;
  fill(in, rank, 0, all);
  SUCCEEDS(ncclAllGather(in, out, count, ncclDouble, world, NULL));
  for (r = 0; r < size; ++r) EXPECT(is_of_rank(out + (size_t)r * count, r, 0, count));
  fill(out + mine, rank, 0, count);
  SUCCEEDS(ncclAllGather(out + mine, out, count, ncclDouble, world, NULL)); /* in place */
  for (r = 0; r < size; ++r) EXPECT(is_of_rank(out + (size_t)r * count, r, 0, count));
  SUCCEEDS(ncclAlltoAll(in, out, count, ncclDouble, world, NULL));
  for (r = 0; r < size; ++r) EXPECT(is_of_rank(out + (size_t)r * count, r, mine, count));
  for (root = 0; root < size; ++root) {
    SUCCEEDS(ncclBroadcast(in, out, count, ncclDouble, root, world, NULL));
    EXPECT(is_of_rank(out, root, 0, count));
    fill(out, rank, 7, count);
    SUCCEEDS(ncclBcast(out, count, ncclDouble, root, world, NULL));
    EXPECT(is_of_rank(out, root, 7, count));
    SUCCEEDS(ncclGather(in, rank == root ? out : NULL, count, ncclDouble, root, world, NULL));
    for (r = 0; rank == root && r < size; ++r) EXPECT(is_of_rank(out + (size_t)r * count, r, 0, count));
    SUCCEEDS(ncclScatter(rank == root ? in : NULL, out, count, ncclDouble, root, world, NULL));
    EXPECT(is_of_rank(out, root, mine, count));
  }
}

void all_collectives(ncclComm_t world, int rank, int size) {
  static const size_t counts[] = {0, 1, 7, 1000, 70001};
  size_t i;
  for (i = 0; i < sizeof counts / sizeof *counts; ++i) {
    const size_t bytes = ((size_t)size * counts[i] + 1) * sizeof(double);
    double *const in = malloc(bytes), *const out = malloc(bytes);
    EXPECT(in != NULL && out != NULL);
    check_reductions(world, rank, size, counts[i], in, out);
    check_moves(world, rank, size, counts[i], in, out);
    free(in);
    free(out);
  }
}

/* Each rank has a scalar of its own. */
void premultiplied_sums(ncclComm_t world, int rank, int size) {
  float in[100], out[100], scalar = (float)(rank + 1), expected;
  ncclRedOp_t ops[2];
  int i, r;
  for (i = 0; i < 100; ++i) in[i] = (float)i;
  SUCCEEDS(ncclRedOpCreatePreMulSum(&ops[0], &scalar, ncclFloat, ncclScalarHostImmediate, world));
  scalar = 100; /* it was read */
  SUCCEEDS(ncclRedOpCreatePreMulSum(&ops[1], &scalar, ncclFloat, ncclScalarHostImmediate, world));
  EXPECT((int)ops[0] >= (int)ncclNumOps && ops[0] != ops[1]);
  SUCCEEDS(ncclAllReduce(in, out, 100, ncclFloat, ops[0], world, NULL));
  for (i = 0; i < 100; ++i) {
    for (r = 0, expected = 0; r < size; ++r) expected += (float)((r + 1) * i);
    EXPECT(out[i] == expected);
  }
  SUCCEEDS(ncclAllReduce(in, in, 100, ncclFloat, ops[1], world, NULL));
  for (i = 0; i < 100; ++i) EXPECT(in[i] == (float)(100 * size * i));
  SUCCEEDS(ncclRedOpDestroy(ops[0], world));
  FAILS(ncclAllReduce(in, in, 100, ncclFloat, ops[0], world, NULL), ncclInvalidArgument, "not destroyed");
  FAILS(ncclRedOpDestroy(ncclSum, world), ncclInvalidArgument, "op is 0");
  FAILS(ncclRedOpCreatePreMulSum(&ops[0], &scalar, ncclFloat, ncclScalarDevice, world), ncclInvalidUsage,
        "host memory");
  FAILS(ncclRedOpCreatePreMulSum(NULL, &scalar, ncclFloat, ncclScalarHostImmediate, world), ncclInvalidArgument,
        "null");
}
