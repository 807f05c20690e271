// Calls that leave copies to be read later: who waits for whom, and how long memory is kept.
#include "executor/copy_ring.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <memory>
#include <vector>

#include "executor/idle_channel.h"

namespace tutti::internal {
namespace {

// A peer that has read as many messages as the test says.
struct Keeper final : IdleChannel {
  std::uint64_t read = 0;
  std::vector<std::shared_ptr<void>> kept;
  std::uint64_t sent() override { return read; }
  void keep(std::shared_ptr<void> memory) override { kept.push_back(std::move(memory)); }
};

class CopyRingOf : public testing::Test {
 protected:
  static constexpr std::size_t kBytes = 4096;

  CopyRingOf() {
    for (std::size_t peer = 1; peer < links_.size(); ++peer) {
      auto channel = std::make_unique<Keeper>();
      readers_[peer - 1] = channel.get();
      links_[peer].channel = std::move(channel);
    }
    fit(kBytes);
  }
  void fit(std::size_t bytes, bool goes_ahead = false) {
    ring_.fit(bytes, goes_ahead, [this](std::size_t of) {
      auto memory = std::make_shared<SymmetricMemory>(nullptr, of);
      allocated_.push_back(memory);
      return memory;
    });
  }
  // A call that sends one message to each peer. Where it lies.
  std::byte* call(std::size_t bytes = kBytes, bool goes_ahead = false) {
    std::byte* const at = ring_.take(bytes, goes_ahead);
    EXPECT_TRUE(is_read());
    for (std::size_t peer = 1; peer < links_.size(); ++peer) ++links_[peer].sent;
    ring_.leave(links_);
    return at;
  }
  // Calls take two places in turn, once all `before` messages have been read.
  void expect_two_places(std::uint64_t before) {
    all_have_read(before);
    std::byte *const first = call(), *const second = call();
    EXPECT_NE(first, second);
    all_have_read(before + 2);
    EXPECT_EQ(call(), first);
    EXPECT_EQ(call(), second);
  }
  bool is_read() { return ring_.is_read(links_, reader_); }
  void all_have_read(std::uint64_t messages) {
    for (Keeper* const reader : readers_) reader->read = messages;
  }
  std::size_t alive() const {
    return static_cast<std::size_t>(std::ranges::count_if(allocated_, [](const auto& of) { return !of.expired(); }));
  }

  std::array<PeerLink, 3> links_;
  std::array<Keeper*, 2> readers_{};
  std::vector<std::weak_ptr<SymmetricMemory>> allocated_;
  CopyRing ring_;
  int reader_ = -1;
};

TEST_F(CopyRingOf, CallsTakeTwoPlacesInTurn) { expect_two_places(0); }

TEST_F(CopyRingOf, ACallWaitsForTheReadersOfTheCallWhosePlaceItTakes) {
  call();
  call();
  readers_[0]->read = 2;
  ring_.take(kBytes, false);
  EXPECT_FALSE(is_read());
  EXPECT_EQ(reader_, 2);
  readers_[1]->read = 1;
  EXPECT_TRUE(is_read());
}

TEST_F(CopyRingOf, ARankThatWaitsForNobodyElseGoesFurtherAhead) {
  fit(kBytes, true);
  std::byte* const first = call(kBytes, true);
  for (std::size_t i = 1; i < CopyRing::kAheadCalls; ++i) EXPECT_EQ(call(kBytes, true), first + i * kBytes);
  EXPECT_EQ(ring_.take(kBytes, true), first);
  EXPECT_FALSE(is_read());
  all_have_read(1);
  EXPECT_TRUE(is_read());
}

TEST_F(CopyRingOf, OthersTakeTwoPlacesOfALongRingToo) {
  fit(kBytes, true);
  for (std::size_t i = 0; i < 5; ++i) call(kBytes, true);
  expect_two_places(5);
}

TEST_F(CopyRingOf, LongCallsTakeAsMuchAsIsWorthIt) {
  constexpr std::size_t kLong = CopyRing::kAheadBytes / 4;
  fit(kLong, true);
  std::byte* const first = call(kLong, true);
  for (std::size_t i = 1; i < 4; ++i) EXPECT_EQ(call(kLong, true), first + i * kLong);
  EXPECT_EQ(ring_.take(kLong, true), first);
}

// Every sequence of seven calls of these lengths: nothing is overwritten that has not been read, and a call waits for
// nothing else.
TEST_F(CopyRingOf, CallsOfDifferentLengthsWaitForWhatTheyOverwrite) {
  constexpr std::array<std::size_t, 4> kLengths = {64, 1024, 2560, kBytes};
  struct Place {
    std::byte *begin, *end;
  };
  fit(kBytes, true);
  for (unsigned sequence = 0; sequence < 1u << 14; ++sequence) {
    std::vector<Place> left;  // that has not been read
    std::uint64_t read = links_[1].sent;
    all_have_read(read);
    for (unsigned i = 0, rest = sequence; i < 7; ++i, rest /= 4) {
      const std::size_t bytes = kLengths[rest % 4];
      std::byte* const at = ring_.take(bytes, sequence % 3 == 0);
      const auto overlaps = [&](const Place& place) { return place.begin < at + bytes && at < place.end; };
      while (std::ranges::any_of(left, overlaps)) {
        ASSERT_FALSE(is_read());
        left.erase(left.begin());
        all_have_read(++read);
      }
      ASSERT_TRUE(is_read());
      for (std::size_t peer = 1; peer < links_.size(); ++peer) ++links_[peer].sent;
      ring_.leave(links_);
      left.push_back({at, at + bytes});
    }
  }
}

TEST_F(CopyRingOf, OutgrownMemoryIsKeptUntilItHasBeenRead) {
  call();
  call();
  EXPECT_EQ(alive(), 1u);
  fit(2 * kBytes);
  EXPECT_EQ(alive(), 2u);
  all_have_read(1);
  call();
  EXPECT_EQ(alive(), 2u);
  all_have_read(2);
  call();
  EXPECT_EQ(alive(), 1u);
}

TEST_F(CopyRingOf, MemoryThatNobodyReadsIsNotKept) {
  fit(2 * kBytes);
  EXPECT_EQ(alive(), 1u);
}

TEST_F(CopyRingOf, OutgrownMemoryIsHandedOnWhereThereIsNoneToReplaceIt) {
  call();
  EXPECT_THROW(ring_.fit(2 * kBytes, false, [](std::size_t) -> std::shared_ptr<SymmetricMemory> { throw 1; }), int);
  ring_.hand_to(links_);
  ring_ = CopyRing();
  for (const Keeper* const reader : readers_) EXPECT_EQ(reader->kept.size(), 1u);
  EXPECT_EQ(alive(), 1u);
}

// Each channel knows what it still lends.
TEST_F(CopyRingOf, ChannelsAreHandedAllMemory) {
  call();
  call();
  fit(2 * kBytes);
  ring_.hand_to(links_);
  ring_ = CopyRing();
  for (const Keeper* const reader : readers_) EXPECT_EQ(reader->kept.size(), 2u);
  EXPECT_EQ(alive(), 2u);
}

}  // namespace
}  // namespace tutti::internal
