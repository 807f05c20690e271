// Two ranks of shared memory in one process, and a channel between them.
#pragma once

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <array>
#include <memory>
#include <optional>

#include "transport/shm/transport.h"

namespace tutti::internal {

inline std::array<int, 2> local_sockets() {
  std::array<int, 2> ends{-1, -1};
  EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends.data()), 0);
  return ends;
}

inline constexpr shm::RingBytes kShortRing{shm::kMinRingBytes, shm::kMinRingBytes};

struct ShmRank {
  Sleeper sleeper;
  shm::Transport transport;
  explicit ShmRank(shm::RingBytes ring_bytes = kShortRing) : transport(sleeper, ring_bytes) {}
};

inline constexpr Tag kShmTag{{1, 2}};

// Two ranks that know each other, and a channel between them.
struct ShmPair {
  ShmRank first;
  std::optional<ShmRank> second;
  std::unique_ptr<Channel> to_second, to_first;
  explicit ShmPair(shm::RingBytes ring_bytes = kShortRing) : first(ring_bytes), second(std::in_place, ring_bytes) {
    const auto ends = local_sockets();
    first.transport.attach(1, ends[0]);
    second->transport.attach(0, ends[1]);
    to_second = first.transport.channel(1, 0, 1);
    to_first = second->transport.channel(1, 1, 0);
  }
  // After a first message to the second rank, each rank knows what the other can do.
  void meet() {
    std::byte in[8], out[8]{};
    to_first->receive(0, kShmTag, in, sizeof in);
    to_second->send(kShmTag, out, sizeof out);
    EXPECT_EQ(to_first->received(), 1u);
    to_first->flush();
  }
  static std::byte* symmetric(ShmRank& rank) {
    shm::Segment& own = rank.transport.own();
    return own.at(own.allocate(kBytes));
  }
  static constexpr std::size_t kBytes = 8192;
};

}  // namespace tutti::internal
