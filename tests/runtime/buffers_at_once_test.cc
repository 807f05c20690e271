// The buffers of calls that are done at once: those that are refused, and those that may be anything.
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

#include "runtime/ranks.h"
#include "tutti/communicator.h"

namespace tutti::internal {
namespace {

class BuffersAtOnce : public testing::TestWithParam<std::string> {
 protected:
  // On two ranks, which all end well.
  void run(const std::function<void(Communicator& world)>& calls) {
    Settings settings;
    settings.transport = GetParam();
    const auto thrown = outcomes(2, settings, [&](Communicator& world) {
      calls(world);
      world.finalize();
    });
    for (const auto& error : thrown) EXPECT_FALSE(error) << error->what();
  }
  // Makes the call until it is done at once.
  static void repeat(const std::function<void()>& call) {
    for (int i = 0; i < 20; ++i) call();
  }
};
INSTANTIATE_TEST_SUITE_P(Communicator, BuffersAtOnce, testing::Values("shm", "tcp"),
                         [](const auto& it) { return it.param; });

TEST_P(BuffersAtOnce, WrongOnesLeaveTheCommunicatorUsable) {
  run([](Communicator& world) {
    std::int32_t in[4] = {1, 2, 3, 4}, out[4];
    const auto sum = [&](const void* from, std::size_t count) {
      world.all_reduce(from, out, count, DType::int32, Op::sum);
    };
    repeat([&] { sum(in, 2); });
    EXPECT_THROW(sum(nullptr, 2), Error);
    EXPECT_THROW(sum(reinterpret_cast<std::byte*>(in) + 1, 2), Error);
    EXPECT_THROW(world.all_reduce(in, in + 1, 2, DType::int32, Op::sum), Error) << "they overlap";
    sum(in, 2);
    EXPECT_EQ(out[1], 4);
    repeat([&] { sum(nullptr, 0); });
  });
}

TEST_P(BuffersAtOnce, WhatARankDoesNotHaveMayBeAnything) {
  run([](Communicator& world) {
    std::int32_t in[2] = {1, 2}, out[2];
    const bool is_root = world.rank() == 0;
    const auto reduce = [&](void* to) { world.reduce(in, to, 2, DType::int32, Op::sum, 0); };
    repeat([&] { reduce(is_root ? out : nullptr); });
    reduce(is_root ? reinterpret_cast<std::byte*>(out) : reinterpret_cast<std::byte*>(in) + 1);
    if (is_root) {
      EXPECT_THROW(reduce(nullptr), Error) << "the root has it";
    }
    reduce(is_root ? out : in);
    if (is_root) {
      EXPECT_EQ(out[1], 4);
    }
  });
}

}  // namespace
}  // namespace tutti::internal
