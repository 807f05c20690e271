#include "transport/shm/distance.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>

#include "memory/between_cores.h"

namespace tutti::internal::shm {
namespace {

const std::int64_t kSlowNs = between_cores().far_ns + 35, kFastNs = 25;  // a line between far cores, and near ones

void judge(Distance& distance, std::int64_t ns, int times) {
  for (int i = 0; i < times; ++i) distance.judge(ns);
}

TEST(Distance, IsNearUntilLinesKeepBeingSlow) {
  Distance distance;
  judge(distance, kSlowNs, 2);
  judge(distance, kFastNs, 1);
  EXPECT_FALSE(distance.is_far()) << "an interruption or two";
  judge(distance, kSlowNs, 2);
  EXPECT_TRUE(distance.is_far());
}

TEST(Distance, FollowsCoresThatMove) {
  Distance distance;
  for (int i = 0; i < 3; ++i) {
    judge(distance, kSlowNs, 100);
    EXPECT_TRUE(distance.is_far());
    judge(distance, kFastNs, 8);
    EXPECT_FALSE(distance.is_far()) << "however long they were far";
  }
}

TEST(Distance, LeavesTheLineAsItIs) {
  std::atomic<std::uint64_t> line{0x123456789abcdef0};
  Distance distance;
  for (int i = 0; i < 100; ++i) distance.look(line, 64 << 10);
  EXPECT_EQ(line.load(), 0x123456789abcdef0);
}

}  // namespace
}  // namespace tutti::internal::shm
