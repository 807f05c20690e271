// Ranks that exchange messages write where they have read: whose space is whose then, and when it is free again.
#include "transport/shm_reuse.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>
#include <span>
#include <vector>

#include "brief.h"

namespace tutti::internal {
namespace {

class ShmReuse : public ReuseOfSpace {};

TEST_P(ShmReuse, AnExchangeNeedsOneSpaceOfEachRank) {
  std::set<const std::byte*> at_first, at_second;
  const auto turn = [&](unsigned i) {
    const Bytes one = message(kShort, 2 * i), other = message(kShort, 2 * i + 1);
    send(*pair.to_second, one);
    send(*pair.to_first, other);
    at_second.insert(read(*pair.to_first, one));
    at_first.insert(read(*pair.to_second, other));
  };
  for (unsigned i = 0; i < 300; ++i) turn(i);  // line numbers wrap around meanwhile
  EXPECT_EQ(at_first.size(), 2u);
  EXPECT_EQ(at_second, at_first) << "threads of a process share the mapping";
}

TEST_P(ShmReuse, PiecesOfOneMessageFitWhereAnotherOneWasRead) {
  std::set<const std::byte*> places;
  for (unsigned i = 0; i < 40; ++i) {  // the pieces of a message may differ by a cache line
    const Bytes piece = message(fragment - 64 * (1 + i * 7 % 3), i);
    send(*pair.to_second, piece);
    send(*pair.to_first, piece);
    places.insert(read(*pair.to_first, piece));
    places.insert(read(*pair.to_second, piece));
  }
  EXPECT_EQ(places.size(), 2u);
}

TEST_P(ShmReuse, AResultIsMadeWhereTheLastMessageWasRead) {
  const Bytes bytes = message(kShort, 1);
  const std::byte* last = nullptr;
  for (int i = 0; i < 40; ++i) {
    Channel &from = i % 2 == 0 ? *pair.to_second : *pair.to_first, &to = i % 2 == 0 ? *pair.to_first : *pair.to_second;
    std::byte* const room = from.reserve(kShmTag, bytes.size());
    ASSERT_NE(room, nullptr);
    if (i > 1) {
      EXPECT_EQ(room, last);
    }
    std::ranges::copy(bytes, room);
    from.commit(kShmTag);
    from.flush();
    last = read(to, bytes);
  }
}

// Then a ring is used all around, so that its cache lines have left the reader's cache when they are written again.
TEST_P(ShmReuse, ARankThatOnlyReadsKeepsNothing) {
  std::set<const std::byte*> places;
  const std::size_t ring = GetParam().one_way;
  for (unsigned i = 0; i < 3 * ring / kShort; ++i) {
    const Bytes bytes = message(kShort, i);
    send(*pair.to_second, bytes);
    places.insert(read(*pair.to_first, bytes));
  }
  EXPECT_EQ(places.size(), ring / kShort);
}

// A message in the writer's own memory outlives the writer's channel; and no longer than it must.
TEST_P(ShmReuse, AMessageOutlivesTheChannelOfItsWriter) {
  for (const bool reads : {true, false}) {
    const auto communicator = reads ? 2u : 3u;
    auto to_second = pair.first.transport.channel(communicator, 0, 1);
    auto to_first = pair.second->transport.channel(communicator, 1, 0);
    const Bytes first = message(kShort, 1), last = message(kShort, 2);
    send(*to_second, first);
    send(*to_first, first);
    read(*to_first, first);
    read(*to_second, first);
    send(*to_second, last);
    to_second.reset();
    EXPECT_FALSE(pair.first.transport.retired().empty());
    if (reads) read(*to_first, last);
    to_first.reset();
    EXPECT_TRUE(pair.second->transport.retired().empty());
    pair.first.transport.channel(communicator + 10, 0, 1);
    EXPECT_TRUE(pair.first.transport.retired().empty()) << "reads: " << reads;
  }
}

// The peer's channel is gone, and more is written to it.
TEST_P(ShmReuse, WhatNobodyCanReadAnyMoreIsNotKept) {
  const auto twice = [&](Channel& to_second, Channel& to_first, const Bytes& bytes) {
    send(to_second, bytes);
    send(to_first, bytes);
    read(to_first, bytes);
    read(to_second, bytes);
  };
  auto to_second = pair.first.transport.channel(2, 0, 1);
  auto to_first = pair.second->transport.channel(2, 1, 0);
  const Bytes bytes = message(kShort, 1);
  twice(*to_second, *to_first, bytes);
  to_first.reset();
  send(*to_second, bytes);
  to_second.reset();
  EXPECT_TRUE(pair.first.transport.retired().empty());
}

TEST_P(ShmReuse, AMessageOutlivesItsWriter) {
  const Bytes first = message(kShort, 1), last = message(kShort, 2);
  send(*pair.to_second, first);
  send(*pair.to_first, first);
  read(*pair.to_first, first);
  read(*pair.to_second, first);
  send(*pair.to_first, last);
  pair.to_first.reset();
  pair.second.reset();
  read(*pair.to_second, last);
}

// All kinds of messages, of all lengths, either way, read sooner or later.
TEST_P(ShmReuse, MixedMessagesComeWholeAndInOrder) {
  std::mt19937 random(7);
  std::byte* const lent = ShmPair::symmetric(pair.first);
  std::memset(lent, 7, ShmPair::kBytes);
  struct Way {
    Channel &from, &to;
    std::vector<Bytes> sent;
    std::size_t read = 0;
    std::uint64_t posted = 0;
  };
  int at_once = 0, looked = 0;
  Way ways[] = {{*pair.to_second, *pair.to_first, {}}, {*pair.to_first, *pair.to_second, {}}};
  for (unsigned turn = 0; turn < (kBrief ? 1500 : 6000); ++turn) {
    Way& way = ways[random() % 2];
    if (random() % 2 == 0 && way.sent.size() - way.read < 40) {
      const unsigned kind = random() % 4;
      const std::size_t bytes = kind == 0   ? random() % shm::kInlineBytes
                                : kind == 1 ? random() % (3 * fragment)
                                            : shm::kInlineBytes + random() % 8192;
      if (kind == 3 && &way == &ways[0]) {
        way.sent.push_back(Bytes(ShmPair::kBytes, std::byte{7}));
        way.from.send(kShmTag, lent, ShmPair::kBytes);
      } else {
        way.sent.push_back(message(bytes, turn));
        if (random() % 3 == 0 && bytes <= shm::kMostAtOnceBytes &&
            way.from.prepare_at_once(way.sent.back().data(), bytes) && random() % 4 != 0) {
          way.from.send_at_once(kShmTag, way.sent.back().data(), bytes);
          at_once += bytes > shm::kInlineBytes;
        } else if (std::byte* const room =
                       kind == 2 && way.from.sent() + 1 == way.sent.size() ? way.from.reserve(kShmTag, bytes) : nullptr;
                   room != nullptr) {
          std::ranges::copy(way.sent.back(), room);
          way.from.commit(kShmTag);
        } else {
          way.from.send(kShmTag, way.sent.back().data(), bytes);
        }
      }
    } else if (way.read < way.sent.size()) {
      const Bytes& expected = way.sent[way.read];
      Bytes got(expected.size());
      const std::byte* const shown = random() % 3 == 0 ? way.to.look_at_once(kShmTag, got.size()) : nullptr;
      if (shown != nullptr) {
        const bool copies = random() % 2 == 0;
        if (!copies) std::ranges::copy(std::span(shown, got.size()), got.begin());
        way.to.take_at_once(copies ? got.data() : nullptr);
        looked += got.size() > shm::kInlineBytes;
      } else if (random() % 2 == 0) {
        way.to.receive(way.read, kShmTag, got.data(), got.size());
        for (++way.posted; way.to.received() < way.posted;) way.from.progress(), way.to.flush();
      } else {
        std::size_t done = 0;
        do {
          std::span<const std::byte> here;
          while (!way.to.view(kShmTag, got.size(), here)) way.from.progress(), way.to.flush();
          std::ranges::copy(here, got.begin() + static_cast<std::ptrdiff_t>(done));
          way.to.release(here.size());
          done += here.size();
        } while (done < got.size());
      }
      way.to.flush();
      ASSERT_EQ(got, expected) << "message " << way.read << " after " << turn << " turns";
      ++way.read;
    }
  }
  EXPECT_GT(at_once, kBrief ? 10 : 40);
  EXPECT_GT(looked, kBrief ? 10 : 40);
}

INSTANTIATE_TEST_SUITE_P(Rings, ShmReuse, all_rings());

}  // namespace
}  // namespace tutti::internal
