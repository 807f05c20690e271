#include "transport/shm/ring.h"

#include <gtest/gtest.h>

namespace tutti::internal::shm {
namespace {

constexpr std::size_t kRing = 4096;

// A ring of which lines announce `bytes` each, and what a test asks of it.
struct Writer {
  Ring ring{kRing};
  std::uint32_t next = kFirstLine;
  bool write(std::size_t bytes, std::uint32_t acked) {
    std::uint64_t at = 0;
    if (!ring.find(bytes, acked, at)) return false;
    ring.take(at, bytes);
    ring.end(next++);
    return true;
  }
};

TEST(Ring, SpaceIsFreeAgainOnceTheLineThatAnnouncedItIsConsumed) {
  Writer writer;
  for (int i = 0; i < 4; ++i) EXPECT_TRUE(writer.write(kRing / 4, kFirstLine));
  EXPECT_FALSE(writer.write(64, kFirstLine));
  EXPECT_TRUE(writer.write(kRing / 4, kFirstLine + 1));
  EXPECT_FALSE(writer.write(64, kFirstLine + 1));
  EXPECT_TRUE(writer.write(kRing / 2, kFirstLine + 3));
  EXPECT_FALSE(writer.write(64, kFirstLine + 3));
}

// The peer consumes nothing while this rank writes as many lines as a lane has; over all numbers that wrap around.
TEST(Ring, LinesThatAreNotConsumedFreeNothingHoweverManyThereAre) {
  Writer writer;
  std::uint32_t acked = kFirstLine;
  for (int turn = 0; turn < 20; ++turn) {
    for (std::uint32_t i = 0; i < kLines; ++i) ASSERT_TRUE(writer.write(kRing / kLines, acked)) << turn << ", " << i;
    ASSERT_FALSE(writer.write(1, acked)) << turn;
    acked += kLines;
  }
}

TEST(Ring, ALineWithoutBytesInTheRingKeepsWhatOthersUse) {
  Writer writer;
  EXPECT_TRUE(writer.write(kRing, kFirstLine));
  writer.ring.end(writer.next++);
  EXPECT_FALSE(writer.write(64, kFirstLine));
  EXPECT_TRUE(writer.write(kRing, kFirstLine + 2));
}

TEST(Ring, APieceThatDoesNotFitBeforeTheEndBeginsAtTheStart) {
  Writer writer;
  EXPECT_TRUE(writer.write(kRing - 64, kFirstLine));
  std::uint64_t at = 0;
  EXPECT_FALSE(writer.ring.find(128, kFirstLine, at));
  ASSERT_TRUE(writer.ring.find(128, kFirstLine + 1, at));
  EXPECT_EQ(writer.ring.offset(at), 0u);
  ASSERT_TRUE(writer.ring.find(64, kFirstLine + 1, at));
  EXPECT_EQ(writer.ring.offset(at), kRing - 64);
}

}  // namespace
}  // namespace tutti::internal::shm
