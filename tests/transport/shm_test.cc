// What shm does that other transports need not: memory changes hands before the first message.
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <optional>
#include <vector>

#include "copiers.h"
#include "transport/shm/transport.h"
#include "transport/shm_pair.h"
#include "tutti/error.h"

namespace tutti::internal {
namespace {

using Rank = ShmRank;
using Pair = ShmPair;
constexpr Tag kTag = kShmTag;

// The leak checker is half of this test.
TEST(Shm, WhatAPeerGaveAndNobodyTookIsGivenBack) {
  const auto ends = local_sockets();
  Rank first, second;
  first.transport.attach(1, ends[0]);
  second.transport.attach(0, ends[1]);
}
TEST(Shm, WhatWasGivenToAConnectionThatNobodyReadsIsGivenBack) {
  const auto ends = local_sockets();
  {
    Rank first;
    first.transport.attach(1, ends[0]);
  }
  close(ends[1]);
}

TEST(Shm, ThreadsOfOneProcessShareAMapping) {
  const auto ends = local_sockets();
  Rank first, second;
  first.transport.attach(1, ends[0]);
  second.transport.attach(0, ends[1]);
  ASSERT_NE(second.transport.find(0), nullptr);
  EXPECT_EQ(second.transport.find(0)->segment.get(), &first.transport.own());
}

// What a sender copies it has back before the peer looks; what it lends, when the peer has taken it.
TEST(Shm, ASenderThatCopiesLendsNothing) {
  for (const Copier copier : {kEach, kSender}) {
    Pair pair;
    std::byte* const out = Pair::symmetric(pair.first);
    std::vector<std::byte> in(Pair::kBytes);
    for (std::uint64_t call = 1; call <= 3; ++call) {
      std::fill_n(out, in.size(), std::byte(call));
      if (call == 2) {  // where the result could be made for the peer, who copies is said there too
        EXPECT_EQ(pair.to_second->reserve(kTag, in.size(), out, copier) != nullptr, copier == kSender);
      }
      if (call == 2 && copier == kSender) {
        std::memcpy(pair.to_second->reserve(kTag, in.size(), out, copier), out, in.size());
        pair.to_second->commit(kTag);
      } else {
        pair.to_second->send(kTag, out, in.size(), copier);
      }
      pair.to_second->flush();
      EXPECT_EQ(pair.to_second->sent(), copier == kSender ? call : call - 1);
      pair.to_first->receive(call - 1, kTag, in.data(), in.size());
      EXPECT_EQ(pair.to_first->received(), call);
      EXPECT_EQ(in, std::vector<std::byte>(in.size(), std::byte(call)));
      pair.to_first->flush();
      EXPECT_EQ(pair.to_second->sent(), call);
    }
  }
}

TEST(Shm, APeersMemoryOutlivesThePeer) {
  const auto ends = local_sockets();
  std::optional<Rank> first(std::in_place);
  Rank second;
  first->transport.attach(1, ends[0]);
  second.transport.attach(0, ends[1]);
  const std::uint64_t offset = first->transport.own().allocate(4096);
  *first->transport.own().at(offset) = std::byte{42};
  first.reset();
  const auto peer = second.transport.find(0);
  ASSERT_NE(peer, nullptr);
  EXPECT_EQ(*peer->segment->at(offset), std::byte{42});
}

TEST(Shm, APeerThatLeavesBeforeItGivesIsAClosedChannel) {
  const auto ends = local_sockets();
  Rank first;
  first.transport.attach(1, ends[0]);
  EXPECT_EQ(first.transport.find(1), nullptr) << "nothing has come yet";
  close(ends[1]);
  EXPECT_THROW(first.transport.find(1), ChannelClosed);
}

TEST(Shm, APeerThatGivesSomethingElseIsRefused) {
  const auto ends = local_sockets();
  Rank first;
  first.transport.attach(1, ends[0]);
  ASSERT_EQ(write(ends[1], "GET / HTTP/1.0\r\n", 16), 16);
  EXPECT_THROW(first.transport.find(1), Error);
  close(ends[1]);
}

TEST(Shm, SymmetricMemoryThatWasWithdrawnIsNotSeen) {
  Pair pair;
  std::byte* const out = Pair::symmetric(pair.first);
  pair.to_second->send(kTag, out, Pair::kBytes);
  std::span<const std::byte> here;
  ASSERT_TRUE(pair.to_first->view(kTag, Pair::kBytes, here));
  EXPECT_EQ(here.data(), out);
  EXPECT_TRUE(pair.to_second->withdraw());
  EXPECT_THROW(pair.to_first->view(kTag, Pair::kBytes, here), ChannelClosed);
}
TEST(Shm, SymmetricMemoryThatWasWithdrawnBeforeAnyoneLookedIsNotSeen) {
  Pair pair;
  pair.to_second->send(kTag, Pair::symmetric(pair.first), Pair::kBytes);
  EXPECT_TRUE(pair.to_second->withdraw());
  std::span<const std::byte> here;
  EXPECT_THROW(pair.to_first->view(kTag, Pair::kBytes, here), ChannelClosed);
}

TEST(Shm, SymmetricMemoryThatWasWithdrawnIsNotWritten) {
  Pair pair;
  std::byte* const in = Pair::symmetric(*pair.second);
  pair.to_first->receive(0, kTag, in, Pair::kBytes);
  pair.to_first->flush();
  ASSERT_EQ(pair.to_second->reserve(kTag, Pair::kBytes), in);
  EXPECT_NO_THROW(pair.to_second->check_reserved());
  EXPECT_TRUE(pair.to_first->withdraw());
  EXPECT_THROW(pair.to_second->check_reserved(), ChannelClosed);
  EXPECT_THROW(pair.to_second->reserve(kTag, Pair::kBytes), ChannelClosed);
}

TEST(Shm, APostThatCameWithALineIsWithdrawnToo) {
  Pair pair;
  std::byte* const in = Pair::symmetric(*pair.second);
  pair.to_first->receive(0, kTag, in, Pair::kBytes);
  pair.to_first->send(kTag, Pair::symmetric(*pair.second), Pair::kBytes);
  std::span<const std::byte> here;
  ASSERT_TRUE(pair.to_second->view(kTag, Pair::kBytes, here));
  ASSERT_EQ(pair.to_second->reserve(kTag, Pair::kBytes), in);
  EXPECT_TRUE(pair.to_first->withdraw());
  EXPECT_THROW(pair.to_second->check_reserved(), ChannelClosed);
  EXPECT_THROW(pair.to_second->reserve(kTag, Pair::kBytes), ChannelClosed);
}

TEST(Shm, AMessageOutlivesItsChannel) {
  Pair pair;
  const std::byte out[8]{std::byte{42}};
  std::byte in[8];
  pair.to_first->send(kTag, out, 8);
  EXPECT_EQ(pair.to_first->sent(), 1u);
  pair.to_first.reset();
  pair.to_second->receive(0, kTag, in, 8);
  EXPECT_EQ(pair.to_second->received(), 1u) << "though this end never looked for the other while it was there";
  EXPECT_EQ(in[0], std::byte{42});
  pair.to_second->flush();
}

TEST(Shm, APeerThatHasGoneWithoutOpeningItsChannelIsNoticed) {
  Pair pair;
  pair.to_first.reset();
  std::byte in[8];
  pair.to_second->receive(0, kTag, in, 8);
  EXPECT_EQ(pair.to_second->received(), 0u);
  pair.second.reset();
  pair.first.transport.look_at_peers();
  EXPECT_THROW(pair.to_second->received(), ChannelClosed);
}

// What it wrote is read to the end; only then is it missed.
TEST(Shm, APeerThatHasGoneIsNoticedByThoseWhoWaitForIt) {
  Pair pair;
  const std::byte out[8]{};
  std::byte in[8];
  pair.to_first->send(kTag, out, 8);
  pair.to_second->receive(0, kTag, in, 8);
  EXPECT_EQ(pair.to_second->received(), 1u);
  pair.to_first->send(kTag, out, 8);
  pair.to_first.reset();
  pair.second.reset();
  pair.first.transport.look_at_peers();
  pair.to_second->receive(1, kTag, in, 8);
  EXPECT_EQ(pair.to_second->received(), 2u);
  EXPECT_NO_THROW(pair.to_second->progress());
  pair.to_second->receive(2, kTag, in, 8);
  EXPECT_THROW(pair.to_second->received(), ChannelClosed);
}

TEST(Shm, MemoryThatAPeerMayStillTouchIsNotUsedAgain) {
  Rank rank;
  shm::Segment& segment = rank.transport.own();
  const std::uint64_t first = segment.allocate(8192);
  *segment.at(first) = std::byte{1};
  segment.keep_all(true);
  segment.free(first, 8192);
  EXPECT_NE(segment.allocate(8192), first);
  EXPECT_EQ(*segment.at(first), std::byte{1});
}

TEST(Shm, FreedSymmetricMemoryIsUsedAgainAndReadsAsZero) {
  Rank rank;
  shm::Segment& segment = rank.transport.own();
  const std::uint64_t first = segment.allocate(8192);
  *segment.at(first) = std::byte{1};
  segment.free(first, 8192);
  EXPECT_EQ(segment.allocate(8192), first);
  EXPECT_EQ(*segment.at(first), std::byte{0});
}

// What does not fit behind what is there lies in an extent of its own, which a peer maps when it first hears of it.
TEST(Shm, SymmetricMemoryIsInOnePieceForAllWhoMapItWhereverExtentsEnd) {
  const auto own = shm::Segment::create();
  const auto seen = shm::Segment::map(::dup(own->fd()));
  const std::size_t large = shm::kSlotBytes + 4096;
  std::vector<std::uint64_t> offsets;
  for (const std::size_t bytes : {std::size_t{4096}, large, std::size_t{8192}, shm::kSlotBytes}) {
    offsets.push_back(own->allocate(bytes));
    std::uint64_t offset = 0;
    for (const std::size_t at : {std::size_t{0}, bytes / 2, bytes - 1}) {
      std::byte* const mine = own->at(offsets.back()) + at;
      *mine = std::byte{42};
      ASSERT_EQ(seen->at(offsets.back())[at], std::byte{42}) << bytes << " bytes, at " << at;
      EXPECT_EQ(seen->at(offsets.back()) + at, seen->at(offsets.back() + at)) << "is mapped in one piece";
      ASSERT_TRUE(own->is_symmetric(mine, bytes - at, offset));
      EXPECT_EQ(offset, offsets.back() + at);
    }
    own->free(offsets.back(), bytes);
  }
  std::uint64_t offset = 0;
  EXPECT_FALSE(own->is_symmetric(own->at(0), 1, offset)) << "that is no symmetric memory";
  EXPECT_FALSE(own->is_symmetric(own->at(offsets[0]), shm::kSlotBytes + 1, offset)) << "that is more than its extent";
  EXPECT_FALSE(own->is_symmetric(&offset, sizeof offset, offset));
}

TEST(Shm, MemoryThatNobodyHasMadeIsRefused) {
  const auto own = shm::Segment::create();
  const auto seen = shm::Segment::map(::dup(own->fd()));
  own->allocate(4096);
  EXPECT_NO_THROW(seen->at(shm::kSymmetricOffset));
  for (const std::uint64_t offset : {shm::kSymmetricOffset + shm::kSlotBytes, shm::kSlots * shm::kSlotBytes - 1,
                                     shm::kSlots * shm::kSlotBytes, ~std::size_t{0}})
    EXPECT_THROW(seen->at(offset), Error) << offset;
}

TEST(Shm, ALaneCrossesNoBorderOfWhatIsMappedInOnePiece) {
  const auto own = shm::Segment::create();
  const std::size_t bytes = shm::kSlotBytes / 4 + 4096;
  for (int peer = 1; peer < 9; ++peer) {
    const std::uint64_t offset = own->add_lane(1, peer, bytes, 4096);
    EXPECT_EQ(offset / shm::kSlotBytes, (offset + bytes - 1) / shm::kSlotBytes);
    *own->at(offset) = std::byte{1};
    own->remove_lane(1, peer, bytes);
  }
}

}  // namespace
}  // namespace tutti::internal
