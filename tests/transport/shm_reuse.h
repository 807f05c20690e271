// Two ranks of shared memory, whose messages go through rings of a given length.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <ostream>
#include <random>
#include <span>
#include <vector>

#include "transport/shm/lane.h"
#include "transport/shm/transport.h"
#include "transport/shm_pair.h"

namespace tutti::internal {

namespace shm {
inline void PrintTo(const RingBytes& ring, std::ostream* out) {
  *out << (ring.both_ways >> 10) << " KiB, one way " << (ring.one_way >> 10) << " KiB"
       << (ring.has_short_fragments ? ", in short fragments" : "");
}
}  // namespace shm

using Bytes = std::vector<std::byte>;
inline constexpr std::size_t kShort = 4096;

struct ReuseOfSpace : testing::TestWithParam<shm::RingBytes> {
  ShmPair pair{GetParam()};
  std::size_t fragment = shm::fragment_bytes(GetParam().both_ways);
};

// Of two ranks with a core each; and of ranks that share processors: two, a few, and many.
inline auto all_rings() {
  using shm::ring_bytes_for;
  return testing::Values(kShortRing, ring_bytes_for(2, false), ring_bytes_for(2, true), ring_bytes_for(3, true),
                         ring_bytes_for(4, true), ring_bytes_for(8, true));
}

inline Bytes message(std::size_t bytes, unsigned number) {
  Bytes made(bytes);
  std::mt19937_64 random(number);
  for (std::size_t done = 0; done < bytes; done += sizeof(std::uint64_t)) {
    const std::uint64_t word = random();
    std::memcpy(&made[done], &word, std::min(sizeof word, bytes - done));
  }
  return made;
}

// Sends what has room at once, without an exception or a wait.
inline void send(Channel& channel, const Bytes& bytes) {
  const std::uint64_t before = channel.sent();
  channel.send(kShmTag, bytes.data(), bytes.size());
  channel.flush();
  ASSERT_EQ(channel.sent(), before + 1) << "no room";
}

// Reads the next message, and says where it began.
inline const std::byte* read(Channel& channel, const Bytes& expected) {
  const std::byte* first = nullptr;
  std::size_t done = 0;
  do {
    std::span<const std::byte> here;
    if (!channel.view(kShmTag, expected.size(), here) || here.size() > expected.size() - done) {
      ADD_FAILURE() << "a message is not here";
      return nullptr;
    }
    EXPECT_TRUE(here.empty() || std::memcmp(here.data(), &expected[done], here.size()) == 0) << "a wrong message";
    if (done == 0) first = here.data();
    done += here.size();
    channel.release(here.size());
  } while (done < expected.size());
  channel.flush();
  return first;
}

}  // namespace tutti::internal
