// Messages that a rank copies to where the peer wants them, in memory that both map. A far_sender does so only if the
// peer's core is far. That its copy goes past the cache is not seen here: only the bytes are, and who has copied.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>

#include "copiers.h"
#include "memory/between_cores.h"
#include "memory/string_copy.h"
#include "transport/shm_reuse.h"

namespace tutti::internal {
namespace {

// What is known of the processor, until the end of a test.
struct Assumed {
  BetweenCores ours = between_cores();
  bool strings = copies_by_string(1 << 20);
  explicit Assumed(const BetweenCores& cores) {
    assume_between_cores(cores);
    assume_string_copies_are_quick(false);
  }
  ~Assumed() {
    assume_between_cores(ours);
    assume_string_copies_are_quick(strings);
  }
};

// Memory of a rank's own that its peers map.
std::byte* allocate(ShmRank& rank, std::size_t bytes) {
  shm::Segment& segment = rank.transport.own();
  return segment.at(segment.allocate(bytes));
}

// A pair whose lines count as those of far cores if `far`, else of near ones; and whose first rank knows it.
struct PairOf {
  Assumed assumed;
  ShmPair pair;
  explicit PairOf(bool far) : assumed({.far_ns = far ? -1'000'000 : 1'000'000'000}) {
    constexpr std::size_t kOneLook = 128 << 10;
    pair.meet();
    for (int look = 0; look < 8; ++look) pair.to_second->reads_from_far(kOneLook);
    EXPECT_EQ(pair.to_second->reads_from_far(kOneLook), far);
  }
};

// `from`: ordinary memory, or mapped by the peer. What this rank copies is back at once; what it lends, once the peer
// has it.
void delivers_what_it_should_and_nothing_else(ShmPair& pair, std::byte* from, Copier copier, bool copied_by_sender) {
  constexpr std::size_t kMost = 320 << 10;
  constexpr std::byte kUntouched{0xee};
  std::byte* const memory = allocate(*pair.second, kMost);
  std::uint64_t number = 0;
  for (const std::size_t bytes : {128u << 10, 200'000u, 256u << 10, (128u << 10) - 1, 4096u, (128u << 10) + 17}) {
    for (const std::size_t at : {64, 0, 3, 64}) {
      SCOPED_TRACE(std::to_string(bytes) + " bytes at " + std::to_string(at));
      std::fill_n(memory, kMost, kUntouched);
      const Bytes sent = message(bytes, static_cast<unsigned>(++number));
      std::ranges::copy(sent, from);
      pair.to_first->receive(number, kShmTag, memory + at, bytes);
      pair.to_first->flush();
      pair.to_second->send(kShmTag, from, bytes, copier);
      pair.to_second->flush();
      EXPECT_EQ(pair.to_second->sent() == number + 1, copied_by_sender);
      ASSERT_EQ(pair.to_first->received(), number + 1);
      pair.to_first->flush();
      EXPECT_EQ(pair.to_second->sent(), number + 1);
      EXPECT_TRUE(std::memcmp(memory + at, sent.data(), bytes) == 0);
      const auto untouched = [&](std::size_t begin, std::size_t end) {
        return std::all_of(memory + begin, memory + end, [](std::byte b) { return b == kUntouched; });
      };
      EXPECT_TRUE(untouched(0, at) && untouched(at + bytes, kMost));
    }
  }
}

TEST(ShmDeliver, AFarSenderCopiesForAFarPeerAndLendsToANearOne) {
  for (const bool far : {false, true}) {
    PairOf of(far);
    delivers_what_it_should_and_nothing_else(of.pair, allocate(of.pair.first, 256 << 10), kFarSender, far);
  }
}

TEST(ShmDeliver, ASenderCopiesWhateverTheDistance) {
  for (const bool far : {false, true}) {
    PairOf of(far);
    delivers_what_it_should_and_nothing_else(of.pair, allocate(of.pair.first, 256 << 10), kSender, true);
  }
}

// The peer reads it where it lies.
void lends_to_a_far_peer(bool asks_first) {
  constexpr std::size_t kBytes = 128 << 10;
  PairOf of(true);
  std::byte* const from = allocate(of.pair.first, kBytes);
  const Bytes sent = message(kBytes, 1);
  std::ranges::copy(sent, from);
  Bytes got(kBytes);
  const auto ask = [&] {
    of.pair.to_first->receive(1, kShmTag, got.data(), kBytes);
    of.pair.to_first->flush();
  };
  if (asks_first) ask();
  of.pair.to_second->send(kShmTag, from, kBytes, kFarSender);
  EXPECT_EQ(of.pair.to_second->sent(), 1U);
  if (!asks_first) ask();
  ASSERT_EQ(of.pair.to_first->received(), 2U);
  of.pair.to_first->flush();
  EXPECT_EQ(of.pair.to_second->sent(), 2U);
  EXPECT_EQ(got, sent);
}

TEST(ShmDeliver, AFarSenderLendsWhatAFarPeerHasNotAskedFor) { lends_to_a_far_peer(false); }
TEST(ShmDeliver, AFarSenderLendsWhatAFarPeerWantsInOrdinaryMemory) { lends_to_a_far_peer(true); }

// The peer's core is near at the first message and far at the second. The messages come back in order.
TEST(ShmDeliver, ACopyIsBackOnlyAfterTheLoanBeforeIt) {
  constexpr std::size_t kBytes = 128 << 10;
  PairOf of(false);
  std::byte* const from = allocate(of.pair.first, 2 * kBytes);
  std::byte* const to = allocate(*of.pair.second, 2 * kBytes);
  const Bytes sent = message(2 * kBytes, 1);
  std::ranges::copy(sent, from);
  for (const std::uint64_t number : {1, 2})
    of.pair.to_first->receive(number, kShmTag, to + (number - 1) * kBytes, kBytes);
  of.pair.to_first->flush();
  of.pair.to_second->send(kShmTag, from, kBytes, kFarSender);
  const Assumed is_far({.far_ns = -1'000'000});
  for (int look = 0; look < 8; ++look) of.pair.to_second->reads_from_far(kBytes);
  of.pair.to_second->send(kShmTag, from + kBytes, kBytes, kFarSender);
  EXPECT_TRUE(std::memcmp(to + kBytes, &sent[kBytes], kBytes) == 0) << "it is copied at once";
  EXPECT_EQ(of.pair.to_second->sent(), 1U);
  ASSERT_EQ(of.pair.to_first->received(), 3U);
  of.pair.to_first->flush();
  EXPECT_EQ(of.pair.to_second->sent(), 3U);
  EXPECT_TRUE(std::memcmp(to, sent.data(), 2 * kBytes) == 0);
}

TEST(ShmDeliver, OrdinaryMemoryIsCopiedWhateverTheDistance) {
  for (const bool far : {false, true}) {
    PairOf of(far);
    Bytes ordinary(256 << 10);
    delivers_what_it_should_and_nothing_else(of.pair, ordinary.data(), kFarSender, true);
  }
}

}  // namespace
}  // namespace tutti::internal
