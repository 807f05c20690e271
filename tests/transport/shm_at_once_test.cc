// Which messages go at once over shared memory, and which should be lent or read by the peer instead.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstddef>
#include <cstring>
#include <vector>

#include "copiers.h"
#include "transport/shm/private_memory.h"
#include "transport/shm_reuse.h"

namespace tutti::internal {
namespace {

struct ShmAtOnce : testing::Test {
  ShmPair pair;
  // Makes the ring, which may fail and so is left to send().
  void connect() {
    const Bytes first = message(kShort, 1);
    send(*pair.to_second, first);
    read(*pair.to_first, first);
  }
  bool goes(const std::byte* data, std::size_t bytes, Copier copier = kEach) {
    return pair.to_second->prepare_at_once(data, bytes, copier);
  }
};

TEST_F(ShmAtOnce, TheFirstMessageThatNoLineHoldsDoesNot) {
  const std::vector<std::byte> own(shm::kMostAtOnceBytes);
  EXPECT_FALSE(goes(own.data(), 8)) << "nobody has connected";
  const Bytes first = message(8, 1);
  send(*pair.to_second, first);
  EXPECT_TRUE(goes(own.data(), shm::kInlineBytes));
  EXPECT_FALSE(goes(own.data(), shm::kInlineBytes + 1)) << "the ring has no memory yet";
  read(*pair.to_first, first);
  connect();
  EXPECT_TRUE(goes(own.data(), shm::kInlineBytes + 1));
  EXPECT_TRUE(goes(own.data(), shm::kMostAtOnceBytes));
}

// Although the first one does not go through the ring.
TEST_F(ShmAtOnce, TheNextMessageDoesWhereThePeerHasSaidWhereItWantsTheFirst) {
  const Bytes first = message(8, 1), long_one = message(ShmPair::kBytes, 2);
  send(*pair.to_second, first);
  std::byte* const place = ShmPair::symmetric(*pair.second);
  pair.to_first->receive(1, kShmTag, place, long_one.size());
  pair.to_first->flush();
  read(*pair.to_first, first);
  EXPECT_FALSE(goes(long_one.data(), long_one.size()));
  send(*pair.to_second, long_one);
  EXPECT_EQ(pair.to_first->received(), 1u);
  EXPECT_EQ(std::memcmp(place, long_one.data(), long_one.size()), 0);
  EXPECT_TRUE(goes(long_one.data(), long_one.size()));
}

TEST_F(ShmAtOnce, SymmetricMemoryDoesOnlyIfTheSenderIsToCopy) {
  connect();
  const std::byte* const lent = ShmPair::symmetric(pair.first);
  EXPECT_FALSE(goes(lent, shm::kCopyBelowBytes));
  EXPECT_FALSE(goes(lent, ShmPair::kBytes, kPeer));
  EXPECT_FALSE(goes(lent, ShmPair::kBytes, kFarSender));
  EXPECT_TRUE(goes(lent, ShmPair::kBytes, kSender));
  EXPECT_TRUE(goes(lent, shm::kCopyBelowBytes - 1)) << "so few bytes are copied, whoever should";
  EXPECT_TRUE(goes(lent, 8));
}

TEST_F(ShmAtOnce, WhatThePeerIsToReadDoesNot) {
  shm::assume_reading_is_quick(true);
  const shm::ProofWord word;
  if (!shm::PrivateMemory(::getpid(), word.proof()).can_be_read())
    GTEST_SKIP() << "this system lets no process read the memory of another";
  connect();
  const std::vector<std::byte> own(shm::kMostAtOnceBytes);
  EXPECT_FALSE(goes(own.data(), own.size(), kPeer));
  EXPECT_TRUE(goes(own.data(), own.size()));
  EXPECT_TRUE(goes(own.data(), shm::kReadFromBytes - 1, kPeer));
  shm::assume_reading_is_quick(false);
}

}  // namespace
}  // namespace tutti::internal
