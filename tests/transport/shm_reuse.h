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
  *out << (ring.both_ways >> 10) << " KiB, one way " << (ring.one_way >> 10) << " KiB";
}
}  // namespace shm

using Bytes = std::vector<std::byte>;
inline constexpr std::size_t kShort = 4096;

struct ReuseOfSpace : testing::TestWithParam<shm::RingBytes> {
  ShmPair pair{GetParam()};
  std::size_t fragment = shm::fragment_bytes(GetParam().both_ways);
};

// Where ranks share processors; where each has its own; where a ring grows while a rank only sends; and where many
// ranks share processors.
inline auto all_rings() {
  using shm::kMaxRingBytes, shm::kMinRingBytes, shm::RingBytes;
  return testing::Values(kShortRing, RingBytes{kMaxRingBytes, kMaxRingBytes}, RingBytes{kMinRingBytes, kMaxRingBytes},
                         RingBytes{kMinRingBytes, kMaxRingBytes / 4, true});
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
