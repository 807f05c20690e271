// A program in C++ that has all ranks in one thread, as those that begin with ncclCommInitAll(), written to nccl.h
// alone: one_thread CASE
#include <nccl.h>

#include <cstdint>
#include <cstdio>
#include <cstring>
#include <functional>
#include <map>
#include <numeric>
#include <string>
#include <vector>

#include "ranks.h"

namespace {

using Comms = std::vector<ncclComm_t>;

Comms join_all(int size, const int* devices = nullptr) {
  Comms comms(size, nullptr);
  SUCCEEDS(ncclCommInitAll(comms.data(), size, devices));
  return comms;
}

void destroy_all(const Comms& comms) {
  for (ncclComm_t comm : comms) SUCCEEDS(ncclCommDestroy(comm));
}

// One call of each rank, in a group.
void together(const Comms& comms, const std::function<ncclResult_t(int rank, ncclComm_t comm)>& call) {
  SUCCEEDS(ncclGroupStart());
  for (std::size_t rank = 0; rank < comms.size(); ++rank) SUCCEEDS(call(static_cast<int>(rank), comms[rank]));
  SUCCEEDS(ncclGroupEnd());
}

template <class T>
using Rows = std::vector<std::vector<T>>;  // one of each rank

template <class T>
Rows<T> inputs(int size, std::size_t count) {
  Rows<T> rows(size, std::vector<T>(count));
  for (int rank = 0; rank < size; ++rank)
    for (std::size_t i = 0; i < count; ++i) rows[rank][i] = static_cast<T>((rank + i) % 7);
  return rows;
}

template <class T>
void sums_of(const Comms& comms, ncclDataType_t type, std::size_t count) {
  const int size = static_cast<int>(comms.size());
  const Rows<T> in = inputs<T>(size, count);
  Rows<T> out(size, std::vector<T>(count)), in_place = in;
  std::vector<T> expected(count);
  for (const auto& row : in)
    for (std::size_t i = 0; i < count; ++i) expected[i] = static_cast<T>(expected[i] + row[i]);
  together(comms, [&](int rank, ncclComm_t comm) {
    return ncclAllReduce(in[rank].data(), out[rank].data(), count, type, ncclSum, comm, nullptr);
  });
  together(comms, [&](int rank, ncclComm_t comm) {
    return ncclAllReduce(in_place[rank].data(), in_place[rank].data(), count, type, ncclSum, comm, nullptr);
  });
  for (int rank = 0; rank < size; ++rank) EXPECT(out[rank] == expected && in_place[rank] == expected);
}

// Every type that a plain loop has; bits of the others are not NCCL's business but the library's.
void every_type() {
  for (const int size : {1, 2, 4}) {
    const Comms comms = join_all(size);
    for (const std::size_t count : {0, 1, 33, 50'001}) {
      sums_of<std::int8_t>(comms, ncclInt8, count);
      sums_of<std::uint8_t>(comms, ncclUint8, count);
      sums_of<std::int32_t>(comms, ncclInt32, count);
      sums_of<std::uint32_t>(comms, ncclUint32, count);
      sums_of<std::int64_t>(comms, ncclInt64, count);
      sums_of<std::uint64_t>(comms, ncclUint64, count);
      sums_of<float>(comms, ncclFloat32, count);
      sums_of<double>(comms, ncclFloat64, count);
    }
    destroy_all(comms);
  }
}

// 1.5 + 2.5 = 4, in the bits of each type.
void types_without_a_loop() {
  struct Bits {
    ncclDataType_t type;
    std::size_t bytes;
    unsigned first, second, sum;
  };
  const Comms comms = join_all(2);
  for (const Bits& bits : {Bits{ncclFloat16, 2, 0x3e00, 0x4100, 0x4400}, Bits{ncclBfloat16, 2, 0x3fc0, 0x4020, 0x4080},
                           Bits{ncclFloat8e4m3, 1, 0x3c, 0x42, 0x48}, Bits{ncclFloat8e5m2, 1, 0x3e, 0x41, 0x44}}) {
    unsigned values[2] = {bits.first, bits.second};  // little-endian
    together(comms, [&](int rank, ncclComm_t comm) {
      return ncclAllReduce(&values[rank], &values[rank], 1, bits.type, ncclSum, comm, nullptr);
    });
    EXPECT(values[0] == bits.sum && values[1] == bits.sum);
  }
  destroy_all(comms);
}

// As NCCL's own performance tests do them: each collective of all ranks in one group, in place too.
void every_collective() {
  for (const int size : {1, 2, 4}) {
    const Comms comms = join_all(size);
    const std::size_t count = 1000, all = count * size;
    const Rows<std::int32_t> in = inputs<std::int32_t>(size, all);
    Rows<std::int32_t> out(size, std::vector<std::int32_t>(all));
    const auto part = [&](const std::vector<std::int32_t>& row, int of) {
      return std::vector<std::int32_t>(row.begin() + of * count, row.begin() + (of + 1) * count);
    };
    together(comms, [&](int rank, ncclComm_t comm) {
      return ncclAllGather(in[rank].data(), out[rank].data(), count, ncclInt, comm, nullptr);
    });
    for (int r = 0; r < size; ++r)
      for (int of = 0; of < size; ++of) EXPECT(part(out[r], of) == part(in[of], 0));
    together(comms, [&](int rank, ncclComm_t comm) {  // in place
      std::int32_t* const buffer = out[rank].data();
      return ncclAllGather(buffer + rank * count, buffer, count, ncclInt, comm, nullptr);
    });
    for (int r = 0; r < size; ++r)
      for (int of = 0; of < size; ++of) EXPECT(part(out[r], of) == part(in[of], 0));
    together(comms, [&](int rank, ncclComm_t comm) {
      return ncclAlltoAll(in[rank].data(), out[rank].data(), count, ncclInt, comm, nullptr);
    });
    for (int r = 0; r < size; ++r)
      for (int of = 0; of < size; ++of) EXPECT(part(out[r], of) == part(in[of], r));

    out = in;
    together(comms, [&](int rank, ncclComm_t comm) {  // in place
      std::int32_t* const buffer = out[rank].data();
      return ncclReduceScatter(buffer, buffer + rank * count, count, ncclInt, ncclMax, comm, nullptr);
    });
    for (int r = 0; r < size; ++r) {
      std::vector<std::int32_t> expected = part(in[0], r);
      for (const auto& row : in)
        for (std::size_t i = 0; i < count; ++i) expected[i] = std::max(expected[i], part(row, r)[i]);
      EXPECT(part(out[r], r) == expected);
    }
    const int root = size - 1;
    out = in;
    together(comms, [&](int rank, ncclComm_t comm) {
      return ncclBcast(out[rank].data(), count, ncclInt, root, comm, nullptr);
    });
    for (int r = 0; r < size; ++r) EXPECT(part(out[r], 0) == part(in[root], 0));
    together(comms, [&](int rank, ncclComm_t comm) {
      return ncclReduce(in[rank].data(), out[rank].data(), count, ncclInt, ncclSum, root, comm, nullptr);
    });
    std::vector<std::int32_t> sum(count);
    for (const auto& row : in)
      for (std::size_t i = 0; i < count; ++i) sum[i] += row[i];
    EXPECT(part(out[root], 0) == sum);
    together(comms, [&](int rank, ncclComm_t comm) {
      return ncclGather(in[rank].data(), out[rank].data(), count, ncclInt, root, comm, nullptr);
    });
    for (int of = 0; of < size; ++of) EXPECT(part(out[root], of) == part(in[of], 0));
    together(comms, [&](int rank, ncclComm_t comm) {
      return ncclScatter(in[rank].data(), out[rank].data(), count, ncclInt, root, comm, nullptr);
    });
    for (int r = 0; r < size; ++r) EXPECT(part(out[r], 0) == part(in[root], r));
    destroy_all(comms);
  }
}

// A ring of sends, a split of all ranks, and a sum that each rank scales, all in groups of one thread.
void messages_and_parts() {
  const int size = 4;
  const int devices[size] = {3, 2, 1, 0};
  const Comms comms = join_all(size, devices);
  std::vector<double> in(size), out(size);
  std::iota(in.begin(), in.end(), 1.0);
  SUCCEEDS(ncclGroupStart());
  for (int rank = 0; rank < size; ++rank) {
    SUCCEEDS(ncclSend(&in[rank], 1, ncclDouble, (rank + 1) % size, comms[rank], nullptr));
    SUCCEEDS(ncclRecv(&out[rank], 1, ncclDouble, (rank + size - 1) % size, comms[rank], nullptr));
  }
  SUCCEEDS(ncclGroupEnd());
  for (int rank = 0; rank < size; ++rank) {
    int device = -1;
    EXPECT(out[rank] == in[(rank + size - 1) % size]);
    SUCCEEDS(ncclCommCuDevice(comms[rank], &device));
    EXPECT(device == devices[rank]);
  }

  Comms halves(size, nullptr), without(size, comms[0]);
  SUCCEEDS(ncclGroupStart());
  for (int rank = 0; rank < size; ++rank) {
    SUCCEEDS(ncclCommSplit(comms[rank], rank / 2, rank, &halves[rank], nullptr));
    SUCCEEDS(ncclCommSplit(comms[rank], NCCL_SPLIT_NOCOLOR, rank, &without[rank], nullptr));
  }
  SUCCEEDS(ncclGroupEnd());
  EXPECT(without == Comms(size, nullptr));
  std::vector<ncclRedOp_t> ops(size);
  for (int rank = 0; rank < size; ++rank) {
    double scalar = rank + 1;
    SUCCEEDS(ncclRedOpCreatePreMulSum(&ops[rank], &scalar, ncclDouble, ncclScalarHostImmediate, halves[rank]));
  }
  together(halves, [&](int rank, ncclComm_t comm) {
    return ncclAllReduce(&in[rank], &out[rank], 1, ncclDouble, ops[rank], comm, nullptr);
  });
  EXPECT(out == (std::vector<double>{5, 5, 25, 25}));  // 1*1 + 2*2, 3*3 + 4*4
  for (int rank = 0; rank < size; ++rank) SUCCEEDS(ncclRedOpDestroy(ops[rank], halves[rank]));
  for (ncclComm_t half : halves) SUCCEEDS(ncclCommFinalize(half));
  destroy_all(halves);
  destroy_all(comms);
}

// Several times, as programs do that make communicators anew: nothing is left of the ones before.
void again_and_again() {
  for (int i = 0; i < 20; ++i) {
    const Comms comms = join_all(3);
    sums_of<float>(comms, ncclFloat, 100);
    if (i % 2 == 0) {
      destroy_all(comms);
    } else {
      SUCCEEDS(ncclGroupStart());
      for (ncclComm_t comm : comms) SUCCEEDS(ncclCommAbort(comm));
      SUCCEEDS(ncclGroupEnd());
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  const std::map<std::string, void (*)()> cases = {{"every_type", every_type},
                                                   {"types_without_a_loop", types_without_a_loop},
                                                   {"every_collective", every_collective},
                                                   {"messages_and_parts", messages_and_parts},
                                                   {"again_and_again", again_and_again}};
  const auto found = argc == 2 ? cases.find(argv[1]) : cases.end();
  EXPECT(found != cases.end());
  if (found != cases.end()) found->second();
  return exit_status();
}
