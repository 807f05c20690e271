// NCCL's functions on streams and device memory: of a fake GPU, and wherever there is one of a real one.
#include "cuda/device.h"

#include <cuda_runtime_api.h>
#include <gtest/gtest.h>
#include <nccl.h>

#include <cstddef>
#include <numeric>
#include <thread>
#include <vector>

#include "cuda/memory.h"

namespace tutti::internal {
namespace {

class NcclOnDevice : public testing::Test {
 protected:
  void SetUp() override {
    const cuda::Devices found = cuda::find_devices();
    if (found.usable.empty()) GTEST_SKIP() << found.why_none();
  }
};

// What a rank of such a program has: memory of ncclMemAlloc(), and a stream that waits for no other.
class Rank {
 public:
  explicit Rank(const std::vector<float>& values) : count_(values.size()) {
    EXPECT_EQ(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), cudaSuccess);
    EXPECT_EQ(ncclMemAlloc(&data_, bytes()), ncclSuccess);
    EXPECT_EQ(cudaMemcpy(data_, values.data(), bytes(), cudaMemcpyDefault), cudaSuccess);
    EXPECT_EQ(cudaStreamSynchronize(cudaStreamLegacy), cudaSuccess);  // the copy returns before all is there
  }
  ~Rank() {
    EXPECT_EQ(ncclMemFree(data_), ncclSuccess);
    EXPECT_EQ(cudaStreamDestroy(stream_), cudaSuccess);
  }
  Rank(const Rank&) = delete;
  Rank& operator=(const Rank&) = delete;

  void* data() const { return data_; }
  cudaStream_t stream() const { return stream_; }
  // Once the stream has come there.
  std::vector<float> values() const {
    std::vector<float> values(count_);
    EXPECT_EQ(cudaStreamSynchronize(stream_), cudaSuccess);
    EXPECT_EQ(cudaMemcpy(values.data(), data_, bytes(), cudaMemcpyDefault), cudaSuccess);
    return values;
  }

 private:
  std::size_t bytes() const { return count_ * sizeof(float); }

  std::size_t count_;
  void* data_ = nullptr;
  cudaStream_t stream_ = nullptr;
};

std::vector<float> values_of(std::size_t count, float factor) {
  std::vector<float> values(count);
  std::iota(values.begin(), values.end(), 1.0f);
  for (float& value : values) value *= factor;
  return values;
}

TEST_F(NcclOnDevice, MemoryIsOfTheCurrentDevice) {
  for (const std::size_t size : {0, 1, 100'000}) {
    void* memory = nullptr;
    ASSERT_EQ(ncclMemAlloc(&memory, size), ncclSuccess);
    EXPECT_EQ(cuda::location_of(memory), (cuda::Location{MemoryKind::device, 0}));
    EXPECT_EQ(ncclMemFree(memory), ncclSuccess);
  }
  int of_the_host = 0;
  EXPECT_EQ(ncclMemFree(&of_the_host), ncclUnhandledCudaError);
  static_cast<void>(cudaGetLastError());
  EXPECT_EQ(ncclMemFree(nullptr), ncclSuccess);
}

TEST_F(NcclOnDevice, OneThreadPutsTheCallsOfAllItsRanksOnStreams) {
  for (const std::size_t count : {std::size_t{1}, std::size_t{1000}, std::size_t{300'001}}) {
    ncclComm_t comms[2];
    const int devices[2] = {0, 0};
    ASSERT_EQ(ncclCommInitAll(comms, 2, devices), ncclSuccess) << ncclGetLastError(nullptr);
    const Rank ranks[2] = {Rank(values_of(count, 1)), Rank(values_of(count, 2))};
    for (int round = 0; round < 3; ++round) {  // 3, 6 and 12 times
      ASSERT_EQ(ncclGroupStart(), ncclSuccess);
      for (int rank = 0; rank < 2; ++rank)
        EXPECT_EQ(ncclAllReduce(ranks[rank].data(), ranks[rank].data(), count, ncclFloat, ncclSum, comms[rank],
                                ranks[rank].stream()),
                  ncclSuccess);
      ASSERT_EQ(ncclGroupEnd(), ncclSuccess) << ncclGetLastError(nullptr);
    }
    for (const Rank& rank : ranks) EXPECT_EQ(rank.values(), values_of(count, 12)) << count;
    for (ncclComm_t comm : comms) EXPECT_EQ(ncclCommDestroy(comm), ncclSuccess);
  }
}

// On the null stream, where a call blocks, and on one of their own.
TEST_F(NcclOnDevice, ThreadsHaveARankEach) {
  ncclUniqueId id;
  ASSERT_EQ(ncclGetUniqueId(&id), ncclSuccess);
  const auto be = [&](int rank) {
    ncclComm_t comm = nullptr;
    int device = -1;
    ASSERT_EQ(cudaSetDevice(0), cudaSuccess);
    ASSERT_EQ(ncclCommInitRank(&comm, 2, id, rank), ncclSuccess) << ncclGetLastError(nullptr);
    EXPECT_EQ(ncclCommCuDevice(comm, &device), ncclSuccess);
    EXPECT_EQ(device, 0);
    {
      const Rank mine(values_of(5000, static_cast<float>(rank + 1)));
      EXPECT_EQ(ncclAllReduce(mine.data(), mine.data(), 5000, ncclFloat, ncclSum, comm, nullptr), ncclSuccess);
      EXPECT_EQ(mine.values(), values_of(5000, 3));
      EXPECT_EQ(ncclAllReduce(mine.data(), mine.data(), 5000, ncclFloat, ncclSum, comm, mine.stream()), ncclSuccess);
      EXPECT_EQ(mine.values(), values_of(5000, 6));
    }
    EXPECT_EQ(ncclCommDestroy(comm), ncclSuccess);
  };
  std::thread other(be, 1);
  be(0);
  other.join();
}

}  // namespace
}  // namespace tutti::internal
