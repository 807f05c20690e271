// Where pointers point, and what memory does that streams use. Skipped where there is no GPU.
#include "cuda/memory.h"

#include <cstdlib>

#include "cuda/on_gpu.h"
#include "tutti/error.h"

namespace tutti::internal::cuda_test {
namespace {

using cuda::DeviceMemory;
using cuda::Location;
using cuda::location_of;
using cuda::Pinned;

class CudaMemory : public OnGpu {};

struct Pages {
  std::byte* data = static_cast<std::byte*>(std::aligned_alloc(4096, 8192));
  ~Pages() { std::free(data); }
};

TEST_F(CudaMemory, EachKindIsFoundFromItsFirstByteToItsLast) {
  const auto expect_kind = [](const std::byte* data, std::size_t bytes, const Location& where) {
    EXPECT_EQ(location_of(data), where);
    EXPECT_EQ(location_of(data + bytes / 2), where);
    EXPECT_EQ(location_of(data + bytes - 1), where);
  };
  EXPECT_TRUE(cuda::is_possible());
  const DeviceMemory on_device(device_, 1000);
  expect_kind(on_device.data(), 1000, {MemoryKind::device, device_});
  const PinnedBytes pinned(1000);
  expect_kind(pinned.data(), 1000, {MemoryKind::pinned, device_});
  void* managed = nullptr;
  cuda::check(cudaMallocManaged(&managed, 1000, cudaMemAttachGlobal));
  expect_kind(static_cast<std::byte*>(managed), 1000, {MemoryKind::managed, device_});
  cuda::check(cudaFree(managed));
  int local = 0;
  EXPECT_EQ(location_of(&local), Location{});
  EXPECT_EQ(location_of(nullptr), Location{});
}

TEST_F(CudaMemory, HostMemoryIsPinnedAsLongAsThatLives) {
  const Pages pages;
  EXPECT_EQ(location_of(pages.data).kind, MemoryKind::host);
  {
    const Pinned pinned(0, pages.data, 8192);
    EXPECT_EQ(location_of(pages.data).kind, MemoryKind::pinned);
    EXPECT_EQ(location_of(pages.data + 8191).kind, MemoryKind::pinned);
    EXPECT_THROW(Pinned(0, pages.data, 4096), Error) << "is pinned already";
    cudaGetLastError();
  }
  EXPECT_EQ(location_of(pages.data).kind, MemoryKind::host);
  const Pinned again(0, pages.data, 4096);
}

TEST_F(CudaMemory, DeviceMemoryIsAlignedAlsoWhereItIsEmpty) {
  const DeviceMemory a(device_, 1), b(device_, 0), c(device_, 3);
  for (const DeviceMemory* each : {&a, &b, &c}) {
    ASSERT_NE(each->data(), nullptr);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(each->data()) % 256, 0u);
  }
}

TEST_F(CudaMemory, MoreThanThereIsIsRefusedAndTheRestGoesOn) {
  try {
    const DeviceMemory memory(device_, std::size_t{1} << 46);
    FAIL() << "there is no such GPU";
  } catch (const Error& error) {
    EXPECT_EQ(error.code, ErrorCode::system);
    EXPECT_NE(std::string(error.what()).find("memory is full"), std::string::npos) << error.what();
  }
  cudaGetLastError();
  const DeviceMemory memory(device_, 1);
}

TEST_F(CudaMemory, IsFreedWhenTheDeviceIsDoneWithIt) {
  const PinnedBytes source(4096, 1), out(4096);
  cuda::OwnStream stream(device_);
  cuda::Semaphore gate(device_);
  std::thread opener;
  {
    const DeviceMemory memory(device_, source.size());
    gate.hold(stream.get(), 1);
    cuda::copy(memory.data(), source.data(), source.size(), stream.get());
    cuda::copy(out.data(), memory.data(), out.size(), stream.get());
    opener = std::thread([&] {
      wait_a_little();
      gate.signal(1);
    });
  }
  EXPECT_TRUE(is_idle(stream.get()));
  EXPECT_TRUE(out.holds(source));
  opener.join();
}

}  // namespace
}  // namespace tutti::internal::cuda_test
