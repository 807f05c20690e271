// Which of a sender's messages both ranks copy, where only those in memory that both map are to be split, and no rank
// writes to the other's ordinary memory.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <span>
#include <vector>

#include "copiers.h"
#include "transport/shm/private_memory.h"
#include "transport/shm/split.h"
#include "transport/shm_pair.h"

namespace tutti::internal {
namespace {

constexpr std::size_t kBytes = 256 << 10;
constexpr Copier kOnlyShared{.shared = SharedCopier::split};
using Memory = std::span<std::byte>;

Memory symmetric(ShmRank& rank) {
  shm::Segment& own = rank.transport.own();
  return {own.at(own.allocate(kBytes)), kBytes};
}

struct SplitHint : testing::Test {
  SplitHint() {
    shm::assume_reading_is_quick(false);
    pair.meet();
  }
  void receive(std::uint64_t message, Memory in) {
    std::ranges::fill(in, std::byte{0xff});
    pair.to_first->receive(message, kShmTag, in.data(), in.size());
    pair.to_first->flush();
  }
  void send(Memory out, std::byte value) {
    std::ranges::fill(out, value);
    pair.to_second->send(kShmTag, out.data(), out.size(), kOnlyShared);
    pair.to_second->flush();
  }
  static bool has_only(Memory memory, std::byte value) {
    return std::ranges::count(memory, value) == static_cast<std::ptrdiff_t>(memory.size());
  }

  ShmPair pair;
};

TEST_F(SplitHint, BothCopyWhatBothMap) {
  const Memory out = symmetric(pair.first), in = symmetric(*pair.second);
  receive(1, in);
  send(out, std::byte{7});
  pair.to_second->sent();  // the sender's turn, while the receiver does nothing
  EXPECT_TRUE(has_only(in.last(kBytes / 4), std::byte{7})) << "the sender begins at the back";
  for (int i = 0; i < 100 && pair.to_first->received() < 2; ++i) pair.to_second->progress();
  pair.to_first->flush();
  EXPECT_TRUE(has_only(in, std::byte{7}));
  EXPECT_EQ(pair.to_second->sent(), 2u);
}

TEST_F(SplitHint, TheReceiverCopiesAllIntoOrdinaryMemory) {
  const Memory out = symmetric(pair.first);
  std::vector<std::byte> in(kBytes);
  receive(1, in);
  send(out, std::byte{7});
  for (int i = 0; i < 10; ++i) pair.to_second->sent();
  EXPECT_TRUE(has_only(in, std::byte{0xff})) << "the sender does not write there";
  for (int i = 0; i < 100 && pair.to_first->received() < 2; ++i) continue;
  pair.to_first->flush();
  EXPECT_TRUE(has_only(in, std::byte{7}));
  EXPECT_EQ(pair.to_second->sent(), 2u);
}

// They need no place among the split ones.
TEST_F(SplitHint, OrdinaryMessagesDoNotWaitForThoseThatAreSplit) {
  std::vector<Memory> lent;
  for (std::uint32_t i = 0; i < shm::kSplits; ++i) send(lent.emplace_back(symmetric(pair.first)), std::byte{7});
  std::vector<std::byte> own(16 << 10), in(kBytes);
  send(own, std::byte{8});
  std::ranges::fill(own, std::byte{9});  // what has been copied does not change
  for (std::uint32_t i = 0; i < shm::kSplits; ++i) {
    receive(1 + i, in);
    for (int turn = 0; turn < 100 && pair.to_first->received() < 2 + i; ++turn) continue;
    EXPECT_TRUE(has_only(in, std::byte{7}));
  }
  const Memory last = Memory(in).first(own.size());
  receive(1 + shm::kSplits, last);
  EXPECT_EQ(pair.to_first->received(), 2 + shm::kSplits);
  EXPECT_TRUE(has_only(last, std::byte{8}));
  pair.to_first->flush();
  EXPECT_EQ(pair.to_second->sent(), 2 + shm::kSplits);
}

TEST_F(SplitHint, OneMoreThatIsSplitWaitsForAPlace) {
  const Memory out = symmetric(pair.first);
  std::vector<std::byte> in(kBytes);
  for (std::uint32_t i = 0; i <= shm::kSplits; ++i) send(out, std::byte{7});
  for (std::uint32_t i = 0; i <= shm::kSplits; ++i) {
    receive(1 + i, in);
    for (int turn = 0; turn < 100 && pair.to_first->received() < 2 + i; ++turn) pair.to_second->progress();
    EXPECT_EQ(pair.to_first->received(), 2 + i);
    EXPECT_TRUE(has_only(in, std::byte{7}));
    pair.to_first->flush();
  }
  EXPECT_EQ(pair.to_second->sent(), 2 + shm::kSplits);
}

}  // namespace
}  // namespace tutti::internal
