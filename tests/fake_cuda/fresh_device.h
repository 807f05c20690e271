// A fake device as at the start of the process, for each test.
#pragma once

#include <gtest/gtest.h>

#include "fake_cuda/fake_cuda.h"

namespace tutti::internal::cuda_test {

class FreshDevice : public testing::Test {
 protected:
  void SetUp() override {
    fake::reset();
    GTEST_FLAG_SET(death_test_style, "threadsafe");
  }
  void TearDown() override { fake::reset(); }

  // That the device has failed, and stays so.
  static void expect_failed(cudaError_t error) {
    EXPECT_EQ(cudaDeviceSynchronize(), error);
    EXPECT_EQ(cudaGetLastError(), error);
    EXPECT_EQ(cudaGetLastError(), error);
    void* data = nullptr;
    EXPECT_EQ(cudaMalloc(&data, 1), error);
  }
};

}  // namespace tutti::internal::cuda_test
