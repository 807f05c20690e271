/* Every collective against plain loops. */
#include <stdlib.h>
#include <string.h>

#include "program.h"

/* What rank `rank` has at `i`: small, so that sums and products of three are exact in every type. */
static int value_of(int rank, size_t i) { return (int)((size_t)rank * 3 + i) % 5 + 1; }

static double combined(int size, size_t i, tutti_op_t op) {
  double all = value_of(0, i);
  int r;
  for (r = 1; r < size; ++r) {
    const double one = value_of(r, i);
    if (op == TUTTI_SUM || op == TUTTI_AVG) all += one;
    if (op == TUTTI_PROD) all *= one;
    if (op == TUTTI_MAX && one > all) all = one;
    if (op == TUTTI_MIN && one < all) all = one;
  }
  return op == TUTTI_AVG ? all / size : all;
}

enum { kCount = 1000 };

static void fill(double* values, int rank, size_t first, size_t count) {
  size_t i;
  for (i = 0; i < count; ++i) values[i] = value_of(rank, first + i);
}

static void check_reductions(tutti_comm_t world, int rank, int size, double* in, double* out) {
  tutti_op_t op;
  int root;
  size_t i;
  for (op = TUTTI_SUM; op <= TUTTI_AVG; ++op) {
    int right = 1;
    fill(in, rank, 0, (size_t)size * kCount);
    SUCCEEDS(tutti_all_reduce(in, out, kCount, TUTTI_FLOAT64, op, world, NULL));
    for (i = 0; i < kCount; ++i) right = right && out[i] == combined(size, i, op);
    EXPECT(right);
    SUCCEEDS(tutti_reduce_scatter(in, out, kCount, TUTTI_FLOAT64, op, world, NULL));
    for (i = 0; i < kCount; ++i) right = right && out[i] == combined(size, (size_t)rank * kCount + i, op);
    EXPECT(right);
    for (root = 0; root < size; ++root) {
      out[0] = -1;
      SUCCEEDS(tutti_reduce(in, rank == root ? out : NULL, kCount, TUTTI_FLOAT64, op, root, world, NULL));
      for (i = 0; rank == root && i < kCount; ++i) right = right && out[i] == combined(size, i, op);
      EXPECT(right);
    }
    SUCCEEDS(tutti_all_reduce(in, in, kCount, TUTTI_FLOAT64, op, world, NULL)); /* in place */
    for (i = 0; i < kCount; ++i) right = right && in[i] == combined(size, i, op);
    EXPECT(right);
  }
}

static void check_moves(tutti_comm_t world, int rank, int size, double* in, double* out) {
  int root, r, right = 1;
  size_t i;
  fill(in, rank, 0, kCount);
  SUCCEEDS(tutti_all_gather(in, out, kCount, TUTTI_FLOAT64, world, NULL));
  for (r = 0; r < size; ++r)
    for (i = 0; i < kCount; ++i) right = right && out[(size_t)r * kCount + i] == value_of(r, i);
  EXPECT(right);
  for (root = 0; root < size; ++root) {
    fill(in, rank, 0, (size_t)size * kCount);
    memset(out, 0, sizeof(double) * (size_t)size * kCount);
    SUCCEEDS(tutti_broadcast(rank == root ? in : NULL, out, kCount, TUTTI_FLOAT64, root, world, NULL));
    for (i = 0; i < kCount; ++i) right = right && out[i] == value_of(root, i);
    EXPECT(right);
    SUCCEEDS(tutti_gather(in, rank == root ? out : NULL, kCount, TUTTI_FLOAT64, root, world, NULL));
    for (r = 0; rank == root && r < size; ++r)
      for (i = 0; i < kCount; ++i) right = right && out[(size_t)r * kCount + i] == value_of(r, i);
    EXPECT(right);
    SUCCEEDS(tutti_scatter(rank == root ? in : NULL, out, kCount, TUTTI_FLOAT64, root, world, NULL));
    for (i = 0; i < kCount; ++i) right = right && out[i] == value_of(root, (size_t)rank * kCount + i);
    EXPECT(right);
  }
  fill(in, rank, 0, (size_t)size * kCount);
  SUCCEEDS(tutti_all_to_all(in, out, kCount, TUTTI_FLOAT64, world, NULL));
  SUCCEEDS(tutti_all_to_all(in, in, kCount, TUTTI_FLOAT64, world, NULL)); /* in place */
  for (r = 0; r < size; ++r)
    for (i = 0; i < kCount; ++i) right = right && out[(size_t)r * kCount + i] == value_of(r, (size_t)rank * kCount + i);
  EXPECT(right && memcmp(in, out, sizeof(double) * (size_t)size * kCount) == 0);
  SUCCEEDS(tutti_barrier(world, NULL));
}

/* Of `size` ranks: row r of a sum of ranks has r + 1 elements, and lies one element behind the row before it. */
static void check_rows(tutti_comm_t world, int rank, int size, double* in, double* out) {
  size_t counts[16], displs[16], to_each[16], places[16], i;
  int r, root, right = 1;
  tutti_work_t work = NULL;
  for (r = 0; r < size; ++r) {
    counts[r] = (size_t)r + 1;
    displs[r] = r == 0 ? 1 : displs[r - 1] + counts[r - 1] + 1;
    to_each[r] = (size_t)(rank + r) % 3; /* as many back as there */
    places[r] = (size_t)r * 3;
  }
  fill(in, rank, 0, (size_t)size * kCount);
  SUCCEEDS(tutti_all_gather_v(in, out, counts, displs, TUTTI_FLOAT64, world, NULL));
  for (r = 0; r < size; ++r)
    for (i = 0; i < counts[r]; ++i) right = right && out[displs[r] + i] == value_of(r, i);
  EXPECT(right);
  SUCCEEDS(tutti_start_reduce_scatter_v(in, counts, displs, out, TUTTI_FLOAT64, TUTTI_SUM, world, NULL, &work));
  SUCCEEDS(tutti_work_wait(work));
  SUCCEEDS(tutti_work_free(work));
  for (i = 0; i < counts[rank]; ++i) right = right && out[i] == combined(size, displs[rank] + i, TUTTI_SUM);
  EXPECT(right);
  for (root = 0; root < size; ++root) {
    const size_t* all = rank == root ? counts : NULL;
    SUCCEEDS(tutti_gather_v(in, counts[rank], out, all, NULL, TUTTI_FLOAT64, root, world, NULL));
    for (r = 0; rank == root && r < size; ++r)
      for (i = 0; i < counts[r]; ++i) right = right && out[(size_t)r * (size_t)(r + 1) / 2 + i] == value_of(r, i);
    SUCCEEDS(tutti_scatter_v(in, all, displs, out, counts[rank], TUTTI_FLOAT64, root, world, NULL));
    for (i = 0; i < counts[rank]; ++i) right = right && out[i] == value_of(root, displs[rank] + i);
    EXPECT(right);
  }
  SUCCEEDS(tutti_all_to_all_v(in, to_each, places, out, to_each, NULL, TUTTI_FLOAT64, world, NULL));
  for (r = 0, i = 0; r < size; ++r) {
    size_t k;
    for (k = 0; k < to_each[r]; ++k, ++i) right = right && out[i] == value_of(r, (size_t)rank * 3 + k);
  }
  EXPECT(right);
}

void all_collectives(tutti_comm_t world, int rank, int size) {
  double* const in = malloc(sizeof(double) * (size_t)size * kCount);
  double* const out = malloc(sizeof(double) * (size_t)size * kCount);
  check_reductions(world, rank, size, in, out);
  check_moves(world, rank, size, in, out);
  check_rows(world, rank, size, in, out);
  SUCCEEDS(tutti_all_reduce(NULL, NULL, 0, TUTTI_INT8, TUTTI_SUM, world, NULL)); /* of nothing */
  free(in);
  free(out);
}

/* Writes a small whole number as an element; returns its bytes. */
static size_t encode(tutti_dtype_t dtype, int value, void* to) {
  const int8_t i8 = (int8_t)value;
  const int32_t i32 = value;
  const int64_t i64 = value;
  const float f32 = (float)value;
  const double f64 = value;
  uint32_t bits;
  uint16_t half;
  memcpy(&bits, &f32, 4);
  switch (dtype) {
    case TUTTI_INT8:
    case TUTTI_UINT8: memcpy(to, &i8, 1); return 1;
    case TUTTI_INT32:
    case TUTTI_UINT32: memcpy(to, &i32, 4); return 4;
    case TUTTI_INT64:
    case TUTTI_UINT64: memcpy(to, &i64, 8); return 8;
    case TUTTI_FLOAT16: half = (uint16_t)((((bits >> 23) - 127 + 15) << 10) | ((bits >> 13) & 0x3ff)); break;
    case TUTTI_BFLOAT16: half = (uint16_t)(bits >> 16); break;
    case TUTTI_FLOAT32: memcpy(to, &f32, 4); return 4;
    default: memcpy(to, &f64, 8); return 8;
  }
  memcpy(to, &half, 2);
  return 2;
}

void all_types(tutti_comm_t world, int rank, int size) {
  tutti_dtype_t dtype;
  tutti_op_t op;
  for (dtype = TUTTI_INT8; dtype <= TUTTI_BFLOAT16; ++dtype)
    for (op = TUTTI_SUM; op <= TUTTI_MIN; ++op) {
      double in[64], out[64], expected[64]; /* aligned for every type */
      size_t i, bytes = 0;
      for (i = 0; i < 64; ++i) {
        bytes = encode(dtype, value_of(rank, i), (char*)in + i * bytes);
        encode(dtype, (int)combined(size, i, op), (char*)expected + i * bytes);
      }
      SUCCEEDS(tutti_all_reduce(in, out, 64, dtype, op, world, NULL));
      EXPECT(memcmp(out, expected, 64 * bytes) == 0);
    }
}

void started_calls(tutti_comm_t world, int rank, int size) {
  enum { kLength = 16, kCalls = 9 };
  double in[3 * kLength], out[kCalls][3 * kLength];
  tutti_work_t works[kCalls] = {NULL};
  size_t i;
  int c, right = 1;
  fill(in, rank, 0, 3 * kLength);
  SUCCEEDS(tutti_start_all_reduce(in, out[0], kLength, TUTTI_FLOAT64, TUTTI_SUM, world, NULL, &works[0]));
  SUCCEEDS(tutti_start_reduce(in, out[1], kLength, TUTTI_FLOAT64, TUTTI_MAX, 1, world, NULL, &works[1]));
  SUCCEEDS(tutti_start_broadcast(in, out[2], kLength, TUTTI_FLOAT64, 1, world, NULL, &works[2]));
  SUCCEEDS(tutti_start_reduce_scatter(in, out[3], kLength, TUTTI_FLOAT64, TUTTI_SUM, world, NULL, &works[3]));
  SUCCEEDS(tutti_start_all_gather(in, out[4], kLength, TUTTI_FLOAT64, world, NULL, &works[4]));
  SUCCEEDS(tutti_start_gather(in, out[5], kLength, TUTTI_FLOAT64, 0, world, NULL, &works[5]));
  SUCCEEDS(tutti_start_scatter(in, out[6], kLength, TUTTI_FLOAT64, 1, world, NULL, &works[6]));
  SUCCEEDS(tutti_start_barrier(world, NULL, &works[7]));
  SUCCEEDS(tutti_start_all_to_all(in, out[8], kLength, TUTTI_FLOAT64, world, NULL, &works[8]));
  for (c = kCalls - 1; c > 0; --c) {
    int done = 0;
    while (c % 2 == 0 && !done && tutti_work_test(works[c], &done) == TUTTI_SUCCESS) continue;
    SUCCEEDS(tutti_work_wait(works[c]));
    SUCCEEDS(tutti_work_wait(works[c])); /* the same again */
  }
  for (c = 0; c < kCalls; ++c) SUCCEEDS(tutti_work_free(works[c])); /* which waits for the first */
  for (i = 0; i < kLength; ++i) {
    right = right && out[0][i] == combined(size, i, TUTTI_SUM);
    right = right && (rank != 1 || out[1][i] == combined(size, i, TUTTI_MAX));
    right = right && out[2][i] == value_of(1, i);
    right = right && out[3][i] == combined(size, (size_t)rank * kLength + i, TUTTI_SUM);
    right = right && out[4][kLength + i] == value_of(1, i);
    right = right && (rank != 0 || out[5][kLength + i] == value_of(1, i));
    right = right && out[8][kLength + i] == value_of(1, (size_t)rank * kLength + i);
    right = right && out[6][i] == value_of(1, (size_t)rank * kLength + i);
  }
  EXPECT(right);
}

void parts_and_memory(tutti_comm_t world, int rank, int size) {
  tutti_comm_t part = NULL;
  tutti_memory_t memory = NULL;
  tutti_registration_t registration = NULL;
  tutti_result_t failure = TUTTI_IN_PROGRESS;
  int count = 0;
  int64_t* values;
  /* The last rank is not in the part; the others are in it the other way round. */
  SUCCEEDS(tutti_comm_split(world, rank == size - 1 ? -1 : 7, -rank, &part));
  EXPECT((part == NULL) == (rank == size - 1));
  if (part != NULL) {
    int own = -1;
    SUCCEEDS(tutti_comm_count(part, &count));
    SUCCEEDS(tutti_comm_rank(part, &own));
    EXPECT(count == size - 1 && own == size - 2 - rank);
    SUCCEEDS(tutti_barrier(part, NULL));
    SUCCEEDS(tutti_comm_finalize(part));
    SUCCEEDS(tutti_comm_destroy(part));
  }
  SUCCEEDS(tutti_memory_allocate(world, 5000, &memory));
  EXPECT(tutti_memory_bytes(memory) == 5000 && (uintptr_t)tutti_memory_data(memory) % 4096 == 0);
  values = tutti_memory_data(memory);
  SUCCEEDS(tutti_comm_register(world, values, 5000, &registration));
  values[0] = rank + 1;
  SUCCEEDS(tutti_all_reduce(values, values, 1, TUTTI_INT64, TUTTI_SUM, world, NULL));
  EXPECT(values[0] == size * (size + 1) / 2);
  SUCCEEDS(tutti_comm_deregister(world, registration));
  SUCCEEDS(tutti_memory_free(memory));
  SUCCEEDS(tutti_comm_get_async_error(world, &failure));
  EXPECT(failure == TUTTI_SUCCESS);
}
