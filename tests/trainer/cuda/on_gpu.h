// What tests of the trainer on a GPU share: a device, or a skipped test.
#pragma once

#include <gtest/gtest.h>

#include "cuda/device.h"
#include "trainer/cuda/gpu.h"

namespace tutti::trainer {

class OnGpu : public testing::Test {
 protected:
  void SetUp() override {
    const internal::cuda::Devices found = internal::cuda::find_devices();
    if (found.usable.empty()) GTEST_SKIP() << found.why_none();
    index_ = found.usable[0].index;
  }
  std::unique_ptr<Device> gpu() const { return make_gpu(index_); }

 private:
  int index_ = -1;
};

}  // namespace tutti::trainer
