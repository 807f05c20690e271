// Ranks write where they have read: what they keep for that, or have there, leaves the peer room.
#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "brief.h"
#include "transport/shm_reuse.h"

namespace tutti::internal {
namespace {

struct ShmRoom : ReuseOfSpace {
  // In the longest ring this is cut into fragments, which have other lengths while only one rank sends.
  std::size_t long_bytes = GetParam().both_ways == shm::kMaxRingBytes ? 300 << 10 : fragment;
};

// The lengths of its fragments.
std::vector<std::size_t> pieces(Channel& from, Channel& to, std::size_t bytes) {
  const Bytes sent = message(bytes, 1);
  from.send(kShmTag, sent.data(), bytes);
  std::vector<std::size_t> lengths;
  std::span<const std::byte> here;
  for (std::size_t done = 0; done < bytes; from.progress())
    if (to.view(kShmTag, bytes, here)) {
      lengths.push_back(here.size());
      done += here.size();
      to.release(here.size());
      to.flush();
    }
  return lengths;
}

std::vector<std::size_t> cut(std::size_t bytes, std::size_t most) {
  std::vector<std::size_t> lengths(bytes / most, most);
  if (bytes % most > 0) lengths.push_back(bytes % most);
  return lengths;
}

// Short pieces, so that the peer begins sooner. But not where ranks share processors.
TEST_P(ShmRoom, ARankThatOnlySendsCutsItsMessages) {
  constexpr std::size_t kKiB = 1024, kMiddle = 256 * kKiB;
  for (unsigned i = 0; i <= 2 * shm::kMaxRingBytes / kMiddle; ++i) pieces(*pair.to_second, *pair.to_first, kMiddle);
  const auto expect_most = [&](std::size_t total, std::size_t short_one) {
    const std::size_t most = GetParam().has_short_fragments ? short_one : fragment;
    EXPECT_EQ(pieces(*pair.to_second, *pair.to_first, total), cut(total, most)) << total;
  };
  expect_most(100 * kKiB, 32 * kKiB);
  expect_most(256 * kKiB, 32 * kKiB);
  expect_most(300 * kKiB, 40 * kKiB);
  expect_most(512 * kKiB, 64 * kKiB);
  expect_most(512 * kKiB + 8, 68 * kKiB);
  expect_most(1024 * kKiB - 8, 128 * kKiB);
  expect_most(4096 * kKiB, 128 * kKiB);
  for (unsigned i = 0; i < shm::kRow; ++i) {
    pieces(*pair.to_second, *pair.to_first, kMiddle);
    pieces(*pair.to_first, *pair.to_second, kMiddle);
  }
  EXPECT_EQ(pieces(*pair.to_second, *pair.to_first, kMiddle), cut(kMiddle, fragment)) << "they exchange messages";
}

// What a rank has written to the peer's ring, and the peer does not read for long, does not hold the peer up.
TEST_P(ShmRoom, MessagesThatNobodyReadsLeaveThePeerRoom) {
  const Bytes long_one = message(long_bytes, 1);
  std::vector<Bytes> waiting;
  for (unsigned i = 0; i < 300; ++i) {
    send(*pair.to_second, long_one);
    read(*pair.to_first, long_one);
    if (i < shm::kRow) {
      waiting.push_back(message(kShort, i));
      send(*pair.to_first, waiting.back());
    }
  }
  for (const Bytes& bytes : waiting) read(*pair.to_second, bytes);
  for (unsigned i = 0; i < 300; ++i) {
    send(*pair.to_second, long_one);
    read(*pair.to_first, long_one);
  }
}

// Nor do the places where they lie, however they cut the ring into pieces.
TEST_P(ShmRoom, MessagesThatNobodyReadsLeaveThePeerRoomWhereverTheyLie) {
  for (unsigned seed = 0; seed < (kBrief ? 40 : 200); ++seed) {
    std::mt19937 random(seed);
    ShmPair fresh(GetParam());
    std::vector<Bytes> waiting;
    for (unsigned i = 0; i < 60; ++i) {
      const Bytes long_one(random() % 2 == 0 ? long_bytes : shm::kInlineBytes + 1 + random() % (fragment - 2048));
      ASSERT_NO_FATAL_FAILURE(send(*fresh.to_second, long_one)) << "seed " << seed << ", message " << i;
      read(*fresh.to_first, long_one);
      if (random() % 2 == 0 && waiting.size() < shm::kRow) {
        waiting.push_back(message(waiting.size() % 8 == 7 ? fragment / 2 : kShort, i));
        send(*fresh.to_first, waiting.back());
      }
    }
    for (const Bytes& bytes : waiting) read(*fresh.to_second, bytes);
  }
}

// A ring that has grown is short again while pieces lie in it, where nobody has read them or the peer keeps them.
TEST_P(ShmRoom, WhatLiesInAGrownRingLeavesThePeerRoom) {
  for (unsigned seed = 0; seed < (kBrief ? 15 : 100); ++seed) {
    std::mt19937 random(seed);
    ShmPair fresh(GetParam());
    const auto some_bytes = [&] {
      Bytes made(shm::kInlineBytes + 1 + random() % (fragment - shm::kInlineBytes));
      std::memset(made.data(), static_cast<int>(random() % 256), made.size());
      return made;
    };
    std::vector<Bytes> waiting;
    for (unsigned turn = 0; turn < 4; ++turn) {
      const std::size_t sent_alone = random() % (3 * shm::kMaxRingBytes);
      for (std::size_t sent = 0; sent < sent_alone;) {
        const Bytes bytes = some_bytes();
        ASSERT_NO_FATAL_FAILURE(send(*fresh.to_second, bytes)) << "seed " << seed << ", turn " << turn;
        read(*fresh.to_first, bytes);
        sent += bytes.size();
      }
      waiting.push_back(some_bytes());
      send(*fresh.to_first, waiting.back());
      for (unsigned i = 0; i < 20; ++i) {
        const Bytes there = some_bytes();
        ASSERT_NO_FATAL_FAILURE(send(*fresh.to_second, there)) << "seed " << seed << ", turn " << turn << ", " << i;
        read(*fresh.to_first, there);
        if (random() % 2 == 0) continue;
        for (const Bytes& bytes : waiting) read(*fresh.to_second, bytes);
        waiting.assign(1, some_bytes());
        ASSERT_NO_FATAL_FAILURE(send(*fresh.to_first, waiting[0])) << "seed " << seed << ", turn " << turn << ", " << i;
      }
    }
  }
}

// A rank keeps what it has read for what it sends next, and need not send any more.
TEST_P(ShmRoom, WhatIsKeptLeavesThePeerRoom) {
  const Bytes long_one = message(long_bytes, 1), short_one = message(kShort, 2);
  for (unsigned i = 0; i < 2 * shm::kRow; ++i) {
    send(*pair.to_first, short_one);
    read(*pair.to_second, short_one);
  }
  for (unsigned i = 0; i < 300; ++i) {
    send(*pair.to_second, long_one);
    read(*pair.to_first, long_one);
  }
}

// Nor does a result for which space is held: the message that it is made of may come in pieces.
TEST_P(ShmRoom, AReservationLetsAMessageInPiecesThrough) {
  for (std::size_t kept = kShort; kept <= fragment; kept += kShort) {
    ShmPair fresh(GetParam());
    const Bytes short_one = message(kShort, 1), kept_one = message(kept, 2), long_one(4 * fragment - kShort);
    send(*fresh.to_first, short_one);
    read(*fresh.to_second, short_one);
    send(*fresh.to_second, kept_one);
    read(*fresh.to_first, kept_one);
    fresh.to_second->send(kShmTag, long_one.data(), long_one.size());
    std::span<const std::byte> here;
    ASSERT_TRUE(fresh.to_first->view(kShmTag, long_one.size(), here));
    std::byte* const room = fresh.to_first->reserve(kShmTag, kept);
    std::size_t done = 0;
    for (int tries = 0; done < long_one.size() && tries < 100; ++tries) {
      fresh.to_second->progress();
      if (!fresh.to_first->view(kShmTag, long_one.size(), here)) continue;
      done += here.size();
      fresh.to_first->release(here.size());
      fresh.to_first->flush();
    }
    ASSERT_EQ(done, long_one.size()) << kept << " bytes are held";
    if (room != nullptr) fresh.to_first->commit(kShmTag);
  }
}

// A lent message comes back although the lines before it announced what is kept.
TEST_P(ShmRoom, WhatIsKeptDoesNotKeepLentMemory) {
  std::byte* const lent = ShmPair::symmetric(pair.first);
  std::memset(lent, 7, ShmPair::kBytes);
  const Bytes bytes = message(kShort, 1);
  for (int i = 0; i < 3; ++i) {
    send(*pair.to_second, bytes);
    send(*pair.to_first, bytes);
    read(*pair.to_first, bytes);
    read(*pair.to_second, bytes);
    pair.to_second->send(kShmTag, lent, ShmPair::kBytes);
    pair.to_second->flush();
    read(*pair.to_first, Bytes(ShmPair::kBytes, std::byte{7}));
    EXPECT_EQ(pair.to_second->sent(), 2u * i + 2);
  }
}

INSTANTIATE_TEST_SUITE_P(Rings, ShmRoom, all_rings());

}  // namespace
}  // namespace tutti::internal
