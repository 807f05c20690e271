// Messages that both ranks copy: the receiver reads parts of the sender's private memory, and the sender writes parts
// to the receiver's.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <deque>
#include <optional>
#include <random>
#include <span>
#include <thread>
#include <vector>

#include "brief.h"
#include "copiers.h"
#include "transport/shm/guarded_write.h"
#include "transport/shm/split.h"
#include "transport/shm_pair.h"

namespace tutti::internal {
namespace {

constexpr Tag kTag = kShmTag;
using Bytes = std::vector<std::byte>;

Bytes pattern(std::size_t bytes, std::uint64_t seed) {
  Bytes made(bytes);
  for (std::size_t i = 0; i < bytes; ++i) made[i] = std::byte((i + seed) * 37 % 251);
  return made;
}
bool are_same(std::span<const std::byte> a, std::span<const std::byte> b) {
  return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size()) == 0);
}
std::size_t count_of(std::span<const std::byte> bytes, std::byte value) {
  return static_cast<std::size_t>(std::ranges::count(bytes, value));
}

TEST(ShmSplitParts, AreTheMessage) {
  for (const std::size_t bytes :
       {std::size_t{1}, std::size_t{4096}, std::size_t{8193}, std::size_t{131'072}, std::size_t{1'000'003},
        std::size_t{3} << 20, (std::size_t{64} << 20) + 1, std::size_t{5} << 30, shm::kMostSplitBytes}) {
    const shm::Parts parts(bytes);
    std::size_t end = 0;
    ASSERT_LE(parts.count(), 0xffffu);
    for (std::uint32_t i = 0; i < parts.count(); ++i) {
      ASSERT_EQ(parts.begin(i), end);
      ASSERT_GT(parts.bytes(i), 0u);
      ASSERT_LE(parts.bytes(i), shm::Parts::kMostBytes);
      end += parts.bytes(i);
    }
    EXPECT_EQ(end, bytes);
    EXPECT_EQ(parts.count() > 1, bytes > 4096) << bytes;
  }
}

class ShmSplit : public testing::Test {
 protected:
  void SetUp() override {
    shm::assume_reading_is_quick(true);
    const shm::ProofWord word;
    if (!shm::PrivateMemory(::getpid(), word.proof()).can_be_written())
      GTEST_SKIP() << "this system lets no process write to the memory of another";
    pair.meet();
  }
  void receive(Bytes& in, std::uint64_t message = 1, bool may_split = true) {
    pair.to_first->receive(message, kTag, in.data(), in.size(), {.may_split = may_split});
    pair.to_first->flush();
  }
  void send(const Bytes& out) { pair.to_second->send(kTag, out.data(), out.size(), kBothCopy); }
  bool is_sent(std::uint64_t messages = 2) { return pair.to_second->sent() == messages; }

  ShmPair pair;
};

TEST_F(ShmSplit, TheSenderWritesFromTheBack) {
  const Bytes out = pattern(1 << 20, 1);
  Bytes in(out.size(), std::byte{0xff});
  receive(in);
  send(out);
  EXPECT_FALSE(is_sent()) << "a part";
  const std::size_t part = shm::Parts(out.size()).bytes(0);
  EXPECT_EQ(count_of(std::span(in).first(in.size() - part), std::byte{0xff}), in.size() - part);
  EXPECT_TRUE(are_same(std::span(in).last(part), std::span(out).last(part)));
  for (int i = 0; i < 100; ++i) EXPECT_FALSE(is_sent());
  EXPECT_TRUE(are_same(in, out)) << "all of it: the receiver has been asleep";
  EXPECT_EQ(pair.to_first->received(), 2u);
  pair.to_first->flush();
  EXPECT_TRUE(is_sent());
}
TEST_F(ShmSplit, TheReceiverNeedsNoHelp) {
  const Bytes out = pattern(1 << 20, 2);
  Bytes in(out.size());
  send(out);
  receive(in);
  for (int i = 0; i < 100 && pair.to_first->received() < 2; ++i) continue;
  EXPECT_EQ(pair.to_first->received(), 2u);
  EXPECT_TRUE(are_same(in, out));
  EXPECT_EQ(pair.to_second->published(), 1u) << "the peer may decline it";
  pair.to_first->flush();
  EXPECT_TRUE(is_sent());
}
// Of any length, wherever it lies, whoever is quicker, and more of them than there are places to share.
TEST_F(ShmSplit, AnyMixtureOfBothIsTheMessage) {
  std::mt19937_64 random(7);
  std::uint64_t messages = 1;
  for (int round = 0; round < (kBrief ? 20 : 60); ++round) {
    std::deque<Bytes> out, in;
    const std::size_t count = 1 + random() % (round % 3 == 0 ? 3 * shm::kSplits : 3);
    for (std::size_t i = 0; i < count; ++i) {
      out.push_back(pattern(shm::kReadFromBytes + random() % 700'000, random()));
      in.emplace_back(out.back().size(), std::byte{0xff});
    }
    const bool posts_first = random() % 2 == 0;
    const auto post = [&] {
      for (std::size_t i = 0; i < count; ++i) receive(in[i], messages + i, random() % 4 != 0);
    };
    if (posts_first) post();
    for (const Bytes& each : out) send(each);
    if (!posts_first) post();
    for (int i = 0; i < 10'000 && !is_sent(messages + count); ++i) {
      if (random() % 3 != 0) pair.to_second->progress();
      if (random() % 3 == 0) pair.to_first->received();
      if (random() % 5 == 0) pair.to_first->flush();
    }
    messages += count;
    ASSERT_TRUE(is_sent(messages));
    for (std::size_t i = 0; i < count; ++i) ASSERT_TRUE(are_same(in[i], out[i])) << round << ", " << i;
  }
}
// More than there are places to share, by a sender that never asks what is back.
TEST_F(ShmSplit, ProgressIsEnough) {
  constexpr std::uint64_t kCount = 3 * shm::kSplits;
  const Bytes out = pattern(shm::kReadFromBytes, 12);
  std::deque<Bytes> in(kCount, Bytes(out.size()));
  for (std::uint64_t i = 0; i < kCount; ++i) receive(in[i], 1 + i);
  for (std::uint64_t i = 0; i < kCount; ++i) send(out);
  for (int i = 0; i < 1000 && pair.to_first->received() < 1 + kCount; ++i) {
    pair.to_second->progress();
    pair.to_first->flush();
  }
  EXPECT_EQ(pair.to_first->received(), 1 + kCount);
  for (const Bytes& each : in) EXPECT_TRUE(are_same(each, out));
}
// Both take parts at the same time.
TEST_F(ShmSplit, TwoThreadsThatCopyAreTheMessage) {
  constexpr std::uint64_t kCount = kBrief ? 50 : 300;
  const Bytes out = pattern(500'000, 13);
  Bytes in(out.size());
  std::thread sender([&] {
    for (std::uint64_t i = 0; i < kCount; ++i) {
      send(out);
      while (!is_sent(2 + i)) continue;
    }
  });
  for (std::uint64_t i = 0; i < kCount; ++i) {
    std::ranges::fill(in, std::byte{0xff});
    receive(in, 1 + i);
    while (pair.to_first->received() < 2 + i) continue;
    pair.to_first->flush();
    EXPECT_TRUE(are_same(in, out)) << i;
  }
  sender.join();
}
TEST_F(ShmSplit, IsViewedByPieces) {
  const Bytes out = pattern(300'000, 3);
  send(out);
  Bytes seen;
  std::span<const std::byte> here;
  for (int i = 0; i < 100 && seen.size() < out.size(); ++i) {
    pair.to_second->progress();
    if (!pair.to_first->view(kTag, out.size(), here)) continue;
    seen.insert(seen.end(), here.begin(), here.end());
    pair.to_first->release(here.size());
  }
  EXPECT_TRUE(are_same(seen, out));
  pair.to_first->flush();
  EXPECT_TRUE(is_sent());
  Bytes in(out.size());
  receive(in, 2);
  send(out);
  for (int i = 0; i < 100 && !is_sent(3); ++i) {
    pair.to_first->progress();
    pair.to_first->flush();
  }
  EXPECT_TRUE(are_same(in, out)) << "the next one";
}
TEST_F(ShmSplit, NothingIsWrittenOnceTheReceiverHasWithdrawn) {
  const Bytes out = pattern(1 << 20, 4);
  Bytes in(out.size(), std::byte{0xff});
  receive(in);
  send(out);
  EXPECT_TRUE(pair.to_first->withdraw());
  EXPECT_THROW(is_sent(), ChannelClosed);
  EXPECT_EQ(count_of(in, std::byte{0xff}), in.size());
}
TEST_F(ShmSplit, NothingIsReadOnceTheSenderHasWithdrawn) {
  const Bytes out = pattern(1 << 20, 5);
  Bytes in(out.size(), std::byte{0xff});
  receive(in);
  send(out);
  EXPECT_FALSE(is_sent());
  EXPECT_TRUE(pair.to_second->withdraw());
  EXPECT_THROW(pair.to_first->received(), ChannelClosed);
  const std::size_t part = shm::Parts(out.size()).bytes(0);
  EXPECT_EQ(count_of(std::span(in).first(in.size() - part), std::byte{0xff}), in.size() - part);
}
// The sender goes while it is within a part: the receiver must not wait for that.
TEST(ShmSplitGone, AReceiverDoesNotWaitForASenderThatHasGone) {
  shm::assume_reading_is_quick(true);
  for (const bool withdraws : {true, false}) {
    std::optional<ShmRank> sender(std::in_place);
    ShmRank receiver;
    const auto ends = local_sockets();
    sender->transport.attach(1, ends[0]);
    receiver.transport.attach(0, ends[1]);
    auto to_receiver = sender->transport.channel(1, 0, 1), to_sender = receiver.transport.channel(1, 1, 0);
    const Bytes out = pattern(1 << 20, 6);
    Bytes in(out.size());
    to_sender->flush();
    EXPECT_EQ(to_sender->received(), 0u);
    to_sender->receive(0, kTag, in.data(), in.size(), {.may_split = true});
    to_receiver->send(kTag, out.data(), out.size(), kBothCopy);
    to_sender->progress();
    shm::Segment& own = receiver.transport.own();
    auto& lane = *reinterpret_cast<shm::Lane*>(own.at(own.find_lane(1, 0)));
    if (lane.writes == 0) GTEST_SKIP() << "this system lets no process write to the memory of another";
    lane.splits[0].taken.fetch_add(1);  // and will not say that it is written
    for (int i = 0; i < 100; ++i) EXPECT_EQ(to_sender->received(), 0u);
    if (withdraws) {
      EXPECT_TRUE(to_receiver->withdraw());
    } else {
      to_receiver.reset();
      sender.reset();
      receiver.transport.look_at_peers();
    }
    EXPECT_THROW(to_sender->received(), ChannelClosed) << withdraws;
  }
}

// The system can write for others neither to a hole nor to what is only read.
TEST_F(ShmSplit, WhatTheSenderCannotWriteTheReceiverReads) {
  constexpr std::size_t kLong = 1 << 20;
  auto* const in =
      static_cast<std::byte*>(::mmap(nullptr, kLong, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  ASSERT_NE(in, MAP_FAILED);
  const Bytes out = pattern(kLong, 8);
  pair.to_first->receive(1, kTag, in, kLong, {.may_split = true});
  pair.to_first->flush();
  send(out);
  EXPECT_FALSE(is_sent());
  ASSERT_EQ(::mprotect(in, kLong, PROT_READ), 0);
  EXPECT_FALSE(is_sent());
  ASSERT_EQ(::mprotect(in, kLong, PROT_READ | PROT_WRITE), 0);
  for (int i = 0; i < 10; ++i) EXPECT_FALSE(is_sent());
  const std::size_t part = shm::Parts(kLong).bytes(0);
  EXPECT_TRUE(are_same({in + kLong - part, part}, std::span(out).last(part)));
  EXPECT_EQ(*std::max_element(in, in + kLong - part), std::byte{0}) << "one refusal is enough";
  for (int i = 0; i < 100 && !is_sent(); ++i) {
    pair.to_first->progress();
    pair.to_first->flush();
  }
  EXPECT_TRUE(is_sent());
  EXPECT_TRUE(are_same({in, kLong}, out));
  ::munmap(in, kLong);
}
// A program may write to such memory, and read it, but the system does not read it for others.
TEST_F(ShmSplit, WhatTheReceiverCannotReadTheSenderShowsPieceByPiece) {
  constexpr std::size_t kLong = (1 << 20) + 8;
  auto* const out =
      static_cast<std::byte*>(::mmap(nullptr, kLong, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  ASSERT_NE(out, MAP_FAILED);
  for (std::size_t i = 0; i < kLong; ++i) out[i] = std::byte(i * 7 % 251);
  std::uint64_t messages = 1;
  for (const int parts : {0, 1, 5}) {
    for (const bool sender_goes_on : {false, true}) {
      Bytes in(kLong);
      receive(in, messages);
      pair.to_second->send(kTag, out, kLong, kBothCopy);
      for (int i = 0; i < parts; ++i) pair.to_second->sent();
      pair.to_first->received();  // the first part
      ASSERT_EQ(::mprotect(out, kLong, PROT_WRITE), 0);
      pair.to_first->received();  // no more
      ++messages;
      for (int i = 0; i < 100 && !is_sent(messages); ++i) {
        if (sender_goes_on) pair.to_second->progress();
        pair.to_first->progress();
        pair.to_first->flush();
      }
      ASSERT_EQ(::mprotect(out, kLong, PROT_READ | PROT_WRITE), 0);
      EXPECT_TRUE(is_sent(messages));
      EXPECT_TRUE(are_same(in, {out, kLong})) << parts << ", " << sender_goes_on;
    }
  }
  ::munmap(out, kLong);
}
// The receiver has declined the message and has all pieces of it, but the sender is still within a part.
TEST_F(ShmSplit, ADeclinedMessageIsNotOverBeforeTheSenderWritesNoMore) {
  constexpr std::size_t kLong = 1 << 20;
  auto* const out =
      static_cast<std::byte*>(::mmap(nullptr, kLong, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  ASSERT_NE(out, MAP_FAILED);
  Bytes in(kLong);
  receive(in);
  pair.to_second->send(kTag, out, kLong, kBothCopy);
  shm::Segment& own = pair.second->transport.own();
  auto& split = reinterpret_cast<shm::Lane*>(own.at(own.find_lane(1, 0)))->splits[0];
  split.taken.fetch_add(1);
  ASSERT_EQ(::mprotect(out, kLong, PROT_WRITE), 0);
  for (int i = 0; i < 100; ++i) {
    EXPECT_EQ(pair.to_first->received(), 1u);
    pair.to_second->progress();
  }
  split.written = shm::split_word(0, 0, 1);
  EXPECT_EQ(pair.to_first->received(), 2u);
  ::munmap(out, kLong);
}
// Of what a wrong peer writes where both ranks say how far they are, nothing makes this rank touch other memory.
TEST_F(ShmSplit, APeerThatTakesWhatIsNotThereIsRefused) {
  const Bytes out = pattern(1 << 20, 9);
  Bytes in(out.size());
  receive(in);
  send(out);
  shm::Segment& own = pair.second->transport.own();
  auto& taken = reinterpret_cast<shm::Lane*>(own.at(own.find_lane(1, 0)))->splits[0].taken;
  for (const std::uint64_t word :
       {shm::split_word(0, 1, 0), shm::split_word(0, 0, 0xffff), shm::split_word(1, 0, 0), ~std::uint64_t{0}}) {
    taken = word;
    EXPECT_THROW(pair.to_first->received(), ChannelClosed) << word;
  }
}
// A receiver that has read all goes, and its lane becomes free memory. The sender may not have heard of that.
TEST_F(ShmSplit, NothingIsWrittenByTheWordsOfALaneThatIsFree) {
  const Bytes out = pattern(1 << 20, 14);
  Bytes in(out.size(), std::byte{0xff});
  receive(in);
  send(out);
  shm::Segment& own = pair.second->transport.own();
  auto& lane = *reinterpret_cast<shm::Lane*>(own.at(own.find_lane(1, 0)));
  lane.splits[0].taken = 0;
  for (int i = 0; i < 10; ++i) EXPECT_FALSE(is_sent());
  EXPECT_EQ(count_of(in, std::byte{0xff}), in.size());
}
TEST_F(ShmSplit, GoesThroughTheRingWhereTheSenderCannotWrite) {
  const Bytes out = pattern(100'000, 15);
  Bytes in(out.size());
  shm::Segment& own = pair.second->transport.own();
  reinterpret_cast<shm::Lane*>(own.at(own.find_lane(1, 0)))->writes = 0;
  receive(in);
  send(out);
  EXPECT_TRUE(is_sent()) << "copied";
  EXPECT_EQ(pair.to_first->received(), 2u);
  EXPECT_TRUE(are_same(in, out));
}
// Such a receiver takes what the sender would have taken, too, or says that it wants the message elsewhere.
TEST_F(ShmSplit, OnlyMemoryThatTheReceiverSaidIsWritten) {
  const Bytes out = pattern(1 << 20, 10);
  Bytes in(out.size(), std::byte{0xff});
  receive(in, 1, false);
  send(out);
  for (int i = 0; i < 10; ++i) EXPECT_FALSE(is_sent());
  EXPECT_EQ(count_of(in, std::byte{0xff}), in.size());
  while (pair.to_first->received() < 2) continue;
  EXPECT_TRUE(are_same(in, out));
}
TEST_F(ShmSplit, LengthsThatDifferAreToldApart) {
  const Bytes out = pattern(1 << 20, 11);
  Bytes in(out.size() - 4);
  receive(in);
  EXPECT_THROW(send(out), LengthMismatch);
}

}  // namespace
}  // namespace tutti::internal
