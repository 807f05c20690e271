// What only a fake device shows: what the trainer does when it refuses or fails or is slow, and what is left
// behind.
#include <thread>

#include "fake_cuda/fresh_device.h"
#include "trainer/cuda/gpu.h"
#include "trainer/operations.h"
#include "trainer/train.h"
#include "tutti/communicator.h"
#include "tutti/error.h"

namespace tutti::trainer {
namespace {

class FakeGpu : public internal::cuda_test::FreshDevice {
 protected:
  static Dataset line() { return {"line", {1, 2, 3, 4, 5}, {3, 5, 7, 9, 12}}; }
  static void expect_told(const char* words) {
    try {
      const auto device = make_gpu(0);
      SingleRank alone;
      train(alone, line(), {.degree = 1}, {}, *device);
      FAIL() << words;
    } catch (const Error& error) {
      EXPECT_EQ(error.code, ErrorCode::system);
      EXPECT_NE(std::string(error.what()).find(words), std::string::npos) << error.what();
    }
  }
};

TEST_F(FakeGpu, ALaunchThatIsRefusedIsTold) {
  internal::fake::fail(internal::fake::Call::launch, 5, cudaErrorNoKernelImageForDevice);
  expect_told("holds no code for this GPU");
}
TEST_F(FakeGpu, AKernelThatFailsOnTheDeviceIsTold) {
  internal::fake::fail(internal::fake::Call::launch, 5, cudaErrorIllegalAddress);
  expect_told("touched memory that is not its own");
}
TEST_F(FakeGpu, MemoryThatIsFullIsTold) {
  internal::fake::fail(internal::fake::Call::allocation, 3, cudaErrorMemoryAllocation);
  expect_told("the GPU's memory is full");
}
TEST_F(FakeGpu, CopiesThatFailAreTold) {
  for (const int nth : {1, 2, 3, 5}) {
    internal::fake::reset();
    internal::fake::fail(internal::fake::Call::copy, static_cast<std::uint64_t>(nth), cudaErrorLaunchFailure);
    expect_told("LaunchFailure");
  }
}
TEST_F(FakeGpu, NoDriverIsTold) {
  internal::fake::set_devices(internal::fake::kNoDriver);
  expect_told("no NVIDIA driver is installed");
}

// What the trainer leaves unordered, the device's delays make show.
TEST_F(FakeGpu, DelaysChangeNoBit) {
  const auto weights = [](bool on_gpu) {
    std::string sha256;
    Communicator::run_threads(2, [&](Communicator& world) {
      const auto device = on_gpu ? make_gpu(0) : nullptr;
      const auto result = train(world, line(), {.degree = 1}, {}, device ? *device : cpu());
      if (world.rank() == 0) sha256 = result.weights_sha256;
    });
    return sha256;
  };
  const std::string expected = weights(false);
  for (const std::uint64_t seed : {1, 2, 3}) {
    internal::fake::set_delays(seed);
    EXPECT_EQ(weights(true), expected) << seed;
  }
}

TEST_F(FakeGpu, NothingIsLeftBehindAndStepsAllocateNothingNew) {
  internal::fake::set_delays(7);
  std::uint64_t after_step[3] = {};
  std::thread([&] {
    const auto device = make_gpu(0);
    SingleRank alone;
    const auto count = [&](const Progress& progress) {
      if (progress.step <= 3) after_step[progress.step - 1] = internal::fake::calls(internal::fake::Call::allocation);
    };
    train(alone, line(), {.degree = 1, .optimizer = OptimizerKind::adam, .steps = 5}, count, *device);
  }).join();
  EXPECT_GT(after_step[0], 0u);
  EXPECT_EQ(after_step[1], after_step[2]);
  EXPECT_EQ(internal::fake::outstanding(), internal::fake::Outstanding{});
}

}  // namespace
}  // namespace tutti::trainer
