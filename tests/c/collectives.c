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
  size_t counts[16] = {0}, displs[16] = {0}, to_each[16] = {0}, places[16] = {0}, i;
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

/* The bytes of 1 in the 8-bit floats, of two ranks' sum of them, and of their largest. */
static void short_floats(tutti_comm_t world, int rank, int size) {
  const uint8_t one[] = {0x38, 0x3c}, two[] = {0x40, 0x40}, three[] = {0x44, 0x42};
  int i;
  for (i = 0; i < 2; ++i) {
    uint8_t in[5], out[5];
    memset(in, rank < 2 ? one[i] : 0, 5);
    SUCCEEDS(tutti_all_reduce(in, out, 5, TUTTI_FLOAT8_E4M3 + i, TUTTI_SUM, world, NULL));
    EXPECT(out[0] == (size > 1 ? two[i] : one[i]) && out[4] == out[0]);
    memset(in, rank == 0 ? three[i] : one[i], 5);
    SUCCEEDS(tutti_all_reduce(in, out, 5, TUTTI_FLOAT8_E4M3 + i, TUTTI_MAX, world, NULL));
    EXPECT(out[0] == three[i] && out[4] == out[0]);
  }
}

/* Each rank's own scalar: rank + 1. */
static void scaled_sums(tutti_comm_t world, int rank, int size) {
  const float scalar = (float)(rank + 1);
  const uint16_t half_scalar = 0x3800; /* 1/2 as float16 */
  const float mine[3] = {1, 2, -4};
  const uint16_t halves[1] = {0x4000}; /* 2 as float16 */
  uint16_t half_sum[1];
  float out[3];
  const float scalars = (float)(size * (size + 1) / 2);
  tutti_op_t op = 0, second = 0;
  SUCCEEDS(tutti_op_create_premul_sum(&op, &scalar, TUTTI_FLOAT32, TUTTI_SCALAR_HOST_IMMEDIATE, world));
  SUCCEEDS(tutti_op_create_premul_sum(&second, &half_scalar, TUTTI_FLOAT16, TUTTI_SCALAR_HOST_IMMEDIATE, world));
  EXPECT(op != second);
  SUCCEEDS(tutti_all_reduce(mine, out, 3, TUTTI_FLOAT32, op, world, NULL));
  EXPECT(out[0] == scalars && out[1] == 2 * scalars && out[2] == -4 * scalars && mine[0] == 1);
  SUCCEEDS(tutti_all_reduce(halves, half_sum, 1, TUTTI_FLOAT16, second, world, NULL));
  EXPECT(size != 1 || half_sum[0] == 0x3c00);
  EXPECT(size != 2 || half_sum[0] == 0x4000);
  EXPECT(size != 3 || half_sum[0] == 0x4200);
  SUCCEEDS(tutti_op_destroy(op, world));
  SUCCEEDS(tutti_op_destroy(second, world));
}

/* Keeps the left operand, and counts what it does: so the result is rank 0's. */
static void keep_left(void* user, const void* left, const void* right, void* out, size_t count) {
  (void)right;
  if (out != left) memcpy(out, left, count * sizeof(int32_t));
  *(size_t*)user += count;
}

static void own_operators(tutti_comm_t world, int rank, int size) {
  const int32_t mine[2] = {100 + rank, -rank};
  int32_t out[2] = {0, 0};
  size_t combined_elements = 0;
  tutti_op_t op = 0;
  SUCCEEDS(tutti_op_create_custom(&op, "keep_left", keep_left, &combined_elements, world));
  SUCCEEDS(tutti_all_reduce(mine, out, 2, TUTTI_INT32, op, world, NULL));
  EXPECT(out[0] == 100 && out[1] == 0);
  EXPECT(size > 1 || combined_elements == 0);
  SUCCEEDS(tutti_op_destroy(op, world));
  FAILS(tutti_all_reduce(mine, out, 2, TUTTI_INT32, op, world, NULL), TUTTI_INVALID_ARGUMENT, "not destroyed");
  FAILS(tutti_op_create_custom(&op, NULL, keep_left, NULL, world), TUTTI_INVALID_ARGUMENT, "name is null");
  FAILS(tutti_op_create_custom(&op, "none", NULL, NULL, world), TUTTI_INVALID_ARGUMENT, "combine is null");
}

/* Bits of integers, and booleans. */
static void bits(tutti_comm_t world, int rank, int size) {
  const uint32_t mine = 0xff00u | 1u << rank;
  uint32_t all;
  uint8_t flags[3], seen[3];
  SUCCEEDS(tutti_all_reduce(&mine, &all, 1, TUTTI_UINT32, TUTTI_BOR, world, NULL));
  EXPECT(all == (0xff00u | ((1u << size) - 1)));
  SUCCEEDS(tutti_all_reduce(&mine, &all, 1, TUTTI_UINT32, TUTTI_BAND, world, NULL));
  EXPECT(all == (size > 1 ? 0xff00u : mine));
  SUCCEEDS(tutti_all_reduce(&mine, &all, 1, TUTTI_UINT32, TUTTI_BXOR, world, NULL));
  EXPECT(all == ((size % 2 != 0 ? 0xff00u : 0) | ((1u << size) - 1)));
  flags[0] = 0, flags[1] = rank == 0 ? 2 : 0, flags[2] = 3; /* every byte but 0 is true */
  SUCCEEDS(tutti_all_reduce(flags, seen, 3, TUTTI_BOOL, TUTTI_SUM, world, NULL));
  EXPECT(seen[0] == 0 && seen[1] == 1 && seen[2] == 1);
  SUCCEEDS(tutti_all_reduce(flags, seen, 3, TUTTI_BOOL, TUTTI_BAND, world, NULL));
  EXPECT(seen[0] == 0 && seen[1] == (size == 1) && seen[2] == 1);
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
  short_floats(world, rank, size);
  scaled_sums(world, rank, size);
  own_operators(world, rank, size);
  bits(world, rank, size);
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
  {
    enum { kCount = 5000 };
    int64_t* const own = malloc(kCount * sizeof *own);
    int i;
    for (i = 0; i < kCount; ++i) own[i] = rank + i;
    SUCCEEDS(tutti_comm_adopt(world, own, kCount * sizeof *own, &registration));
    SUCCEEDS(tutti_all_reduce(own, own, kCount, TUTTI_INT64, TUTTI_SUM, world, NULL));
    SUCCEEDS(tutti_comm_deregister(world, registration));
    for (i = 0; i < kCount; ++i) EXPECT(own[i] == size * (size - 1) / 2 + (int64_t)size * i);
    free(own);
  }
  SUCCEEDS(tutti_comm_get_async_error(world, &failure));
  EXPECT(failure == TUTTI_SUCCESS);
}
