// Ranks write where they have read: what they keep for that, or have there, leaves the peer room.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <utility>
#include <vector>

#include "brief.h"
#include "transport/shm_reuse.h"

namespace tutti::internal {
namespace {

struct ShmRoom : ReuseOfSpace {
  // More than one fragment, if the ring has room for several.
  std::size_t long_bytes = GetParam().both_ways == shm::kMaxRingBytes ? 2 * fragment + 64 : fragment;
};

std::size_t first_piece(Channel& from, Channel& to, const Bytes& bytes) {
  from.send(kShmTag, bytes.data(), bytes.size());
  std::span<const std::byte> here;
  const std::size_t first = to.view(kShmTag, bytes.size(), here) ? here.size() : 0;
  for (std::size_t done = 0; done < bytes.size(); from.progress())
    if (to.view(kShmTag, bytes.size(), here)) {
      done += here.size();
      to.release(here.size());
      to.flush();
    }
  return first;
}

// Short pieces, so that the peer begins sooner. But not where ranks share processors.
TEST_P(ShmRoom, ARankThatOnlySendsCutsItsMessages) {
  constexpr std::size_t kMiddle = 256 << 10;
  const Bytes middle = message(kMiddle, 1);
  for (unsigned i = 0; i <= 2 * shm::kMaxRingBytes / kMiddle; ++i) first_piece(*pair.to_second, *pair.to_first, middle);
  const bool cuts = GetParam().has_short_fragments;
  const auto expect_first = [&](std::size_t total, std::size_t short_one) {
    const std::size_t first = cuts ? short_one : std::min(fragment, total);
    EXPECT_EQ(first_piece(*pair.to_second, *pair.to_first, message(total, 2)), first) << total;
  };
  expect_first(100 << 10, 32 << 10);
  expect_first(256 << 10, 32 << 10);
  expect_first((512 << 10) + 8, 64 << 10);
  expect_first(4 << 20, 128 << 10);
  for (unsigned i = 0; i < shm::kRow; ++i) {
    first_piece(*pair.to_second, *pair.to_first, middle);
    first_piece(*pair.to_first, *pair.to_second, middle);
  }
  EXPECT_EQ(first_piece(*pair.to_second, *pair.to_first, middle), fragment) << "they exchange messages";
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
