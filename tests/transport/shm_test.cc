// What shm does that other transports need not: memory changes hands before the first message.
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <optional>

#include "transport/shm/transport.h"
#include "tutti/error.h"

namespace tutti {
namespace {

std::array<int, 2> local_sockets() {
  std::array<int, 2> ends{-1, -1};
  EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends.data()), 0);
  return ends;
}

struct Rank {
  Sleeper sleeper;
  shm::Transport transport{sleeper};
};

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
  EXPECT_EQ(second.transport.find(0)->segment->base(), first.transport.own().base());
}

TEST(Shm, APeersMemoryOutlivesThePeer) {
  const auto ends = local_sockets();
  std::optional<Rank> first(std::in_place);
  Rank second;
  first->transport.attach(1, ends[0]);
  second.transport.attach(0, ends[1]);
  const std::uint64_t offset = first->transport.own().allocate(4096);
  first->transport.own().base()[offset] = std::byte{42};
  first.reset();
  const auto peer = second.transport.find(0);
  ASSERT_NE(peer, nullptr);
  EXPECT_EQ(peer->segment->base()[offset], std::byte{42});
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

TEST(Shm, FreedSymmetricMemoryIsUsedAgainAndReadsAsZero) {
  Rank rank;
  shm::Segment& segment = rank.transport.own();
  const std::uint64_t first = segment.allocate(8192);
  segment.base()[first] = std::byte{1};
  segment.free(first, 8192);
  EXPECT_EQ(segment.allocate(8192), first);
  EXPECT_EQ(segment.base()[first], std::byte{0});
}

}  // namespace
}  // namespace tutti
