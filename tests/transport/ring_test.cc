#include "transport/shm/ring.h"

#include <gtest/gtest.h>

namespace tutti::internal::shm {
namespace {

constexpr std::size_t kRing = 4096;

// A ring of which lines announce `bytes` each, and what a test asks of it.
struct Writer {
  Ring ring{RingBytes{kRing, kRing}};
  std::size_t used = kRing;
  bool is_packed = false;
  std::uint32_t next = kFirstLine;
  Space room;  // of the last write
  bool write(std::size_t bytes, std::uint32_t acked) {
    if (!ring.find(bytes, {acked, next}, used, is_packed, room)) return false;
    ring.take(room, next++);
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
  ++writer.next;
  EXPECT_FALSE(writer.write(64, kFirstLine));
  EXPECT_TRUE(writer.write(kRing, kFirstLine + 2));
}

TEST(Ring, APieceThatDoesNotFitBeforeTheEndBeginsAtTheStart) {
  Writer writer;
  EXPECT_TRUE(writer.write(kRing - 64, kFirstLine));
  EXPECT_FALSE(writer.write(128, kFirstLine));
  ASSERT_TRUE(writer.write(128, kFirstLine + 1));
  EXPECT_EQ(writer.room.begin, 0u);
}

TEST(Ring, WhereItIsPackedAFragmentGoesToTheFirstGap) {
  Writer writer;
  writer.is_packed = true;
  EXPECT_TRUE(writer.write(kRing / 4, kFirstLine));
  EXPECT_TRUE(writer.write(kRing / 2, kFirstLine));
  EXPECT_EQ(writer.room.begin, kRing / 4);
  EXPECT_TRUE(writer.write(kRing / 8, kFirstLine + 1));
  EXPECT_EQ(writer.room.begin, 0u);
  EXPECT_TRUE(writer.write(kRing / 4, kFirstLine + 1));
  EXPECT_EQ(writer.room.begin, 3 * kRing / 4) << "the gap before is too short";
  EXPECT_TRUE(writer.write(64, kFirstLine + 1));
  EXPECT_EQ(writer.room.begin, kRing / 8);
  EXPECT_FALSE(writer.write(kRing / 4, kFirstLine + 1));
  EXPECT_TRUE(writer.write(kRing, kFirstLine + 5));
}

TEST(Ring, ManyRanksThatShareProcessorsPackTheirs) {
  for (const std::size_t ranks : {1u, 2u, 4u, 6u}) EXPECT_FALSE(ring_bytes_for(ranks, true).is_packed) << ranks;
  for (const std::size_t ranks : {7u, 8u, 64u}) EXPECT_TRUE(ring_bytes_for(ranks, true).is_packed) << ranks;
  EXPECT_FALSE(ring_bytes_for(64, false).is_packed);
}

// Between cores that share no cache a fragment that does not go where one was read takes several times as long.
TEST(Ring, FewRanksThatShareProcessorsHaveLongOnes) {
  EXPECT_EQ(ring_bytes_for(2, true).both_ways, kMaxRingBytes);
  EXPECT_EQ(ring_bytes_for(3, true).both_ways, kMaxRingBytes / 2);
  EXPECT_EQ(ring_bytes_for(4, true).both_ways, kMaxRingBytes / 4);
  EXPECT_EQ(ring_bytes_for(8, true).both_ways, kMinRingBytes);
}

TEST(Ring, OnlyTwoRanksWithAProcessorEachHaveShortFragments) {
  EXPECT_TRUE(ring_bytes_for(2, false).has_short_fragments);
  for (const std::size_t ranks : {2u, 3u, 8u}) EXPECT_FALSE(ring_bytes_for(ranks, true).has_short_fragments) << ranks;
  EXPECT_FALSE(ring_bytes_for(3, false).has_short_fragments);
}

// The pieces of a message may differ by a cache line.
TEST(Ring, FragmentsOfAboutTheSameLengthTakeTheSameSpace) {
  EXPECT_EQ(space_of(100 * 1024 - 64), space_of(100 * 1024));
  EXPECT_NE(space_of(100 * 1024), space_of(100 * 1024 + 64)) << "mostly, but not always";
  EXPECT_EQ(space_of(1), 64u);
  EXPECT_EQ(space_of(kFragmentBytes), kFragmentBytes) << "as many as before find room";
  for (const std::size_t total : {1 << 10, 300 << 10, (512 << 10) + 8, 4 << 20})
    EXPECT_EQ(space_of(one_way_fragment_bytes(total)), one_way_fragment_bytes(total)) << total;
}

TEST(Ring, WhatIsUsedOfItMayChange) {
  Writer writer;
  writer.used = kRing / 4;
  EXPECT_TRUE(writer.write(kRing / 4, kFirstLine));
  EXPECT_FALSE(writer.write(64, kFirstLine));
  writer.used = kRing;
  for (std::uint32_t i = 1; i < 4; ++i) {
    ASSERT_TRUE(writer.write(kRing / 4, kFirstLine));
    EXPECT_EQ(writer.room.begin, i * kRing / 4);
  }
  writer.used = kRing / 4;
  EXPECT_FALSE(writer.write(64, kFirstLine)) << "nothing has been read of what is used";
  ASSERT_TRUE(writer.write(64, kFirstLine + 1));
  EXPECT_EQ(writer.room.begin, 0u);
  EXPECT_TRUE(writer.write(kRing / 4 - 64, kFirstLine + 1));
  EXPECT_FALSE(writer.write(64, kFirstLine + 4)) << "what lies beyond is not used";
  writer.used = kRing;
  EXPECT_TRUE(writer.write(kRing / 2, kFirstLine + 4));
}

TEST(Ring, PiecesFollowEachOther) {
  Writer writer;
  for (std::uint32_t i = 0; i < 100; ++i) {
    ASSERT_TRUE(writer.write(1000, kFirstLine + i));
    EXPECT_EQ(writer.room.begin, i % 4 * 1024);
  }
}

// What the peer has written to is not free, whatever it acknowledges, and what is free around it is used.
TEST(Ring, SpaceThatThePeerReusesComesBackWhenItIsTakenBack) {
  Writer writer;
  ASSERT_TRUE(writer.write(1024, kFirstLine));
  ASSERT_TRUE(writer.write(1024, kFirstLine));
  writer.ring.lend(kFirstLine + 1);
  EXPECT_EQ(writer.ring.lent().begin, 1024u);
  EXPECT_EQ(writer.ring.lent().end, 2048u);
  for (std::uint32_t i = 0; i < 30; ++i) {
    ASSERT_TRUE(writer.write(1024, writer.next)) << i;
    EXPECT_NE(writer.room.begin, 1024u) << i;
  }
  EXPECT_FALSE(writer.write(2048 + 64, writer.next));
  writer.ring.take_back(false);
  EXPECT_EQ(writer.ring.lent().bytes(), 0u);
  EXPECT_TRUE(writer.write(kRing, writer.next));
}

TEST(Ring, SpaceThatIsKeptIsTheNextThatIsFound) {
  Writer writer;
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(writer.write(512, kFirstLine));
  writer.ring.lend(kFirstLine + 1);
  writer.ring.take_back(true);
  ASSERT_TRUE(writer.write(512, kFirstLine + 3));
  EXPECT_EQ(writer.room.begin, 512u);
  EXPECT_FALSE(writer.write(kRing, kFirstLine + 3)) << "the line that announces it again is not consumed";
  ASSERT_TRUE(writer.write(512, kFirstLine + 4));
  EXPECT_EQ(writer.room.begin, 1536u) << "the others go on where they were";
}

TEST(Ring, KeptSpaceThatIsTooShortIsFree) {
  Writer writer;
  ASSERT_TRUE(writer.write(512, kFirstLine));
  writer.ring.lend(kFirstLine);
  writer.ring.take_back(true);
  EXPECT_TRUE(writer.write(kRing, kFirstLine + 1));
}

TEST(Ring, ALineThatHasAnnouncedNothingLendsNothing) {
  Writer writer;
  ASSERT_TRUE(writer.write(512, kFirstLine));
  writer.ring.lend(kFirstLine + 1);
  EXPECT_EQ(writer.ring.lent().bytes(), 0u);
  writer.ring.take_back(true);
  writer.ring.lend(kFirstLine);
  EXPECT_EQ(writer.ring.lent().bytes(), 512u);
  writer.ring.lend(kFirstLine);
  writer.ring.take_back(false);
  EXPECT_EQ(writer.ring.lent().bytes(), 0u) << "once is enough";
}

}  // namespace
}  // namespace tutti::internal::shm
