// Messages that both ranks copy, where one or both have them in symmetric or adopted memory.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <random>
#include <span>
#include <vector>

#include "brief.h"
#include "copiers.h"
#include "transport/shm/split.h"
#include "transport/shm_pair.h"

namespace tutti::internal {
namespace {

constexpr Tag kTag = kShmTag;
constexpr std::size_t kMost = 1 << 20, kGuard = 64;
using Memory = std::span<std::byte>;

enum class Kind : std::uint8_t { ordinary, symmetric, adopted };

// Memory of a rank, with bytes in front of it and behind it that are nobody's to write.
class Room {
 public:
  Room(ShmRank& rank, Kind kind) : kind(kind) {
    shm::Segment& own = rank.transport.own();
    if (kind == Kind::symmetric) {
      begin_ = own.at(own.allocate(kMost + 2 * kGuard));
    } else {
      ordinary_.resize(kMost + 2 * kGuard);
      begin_ = ordinary_.data();
    }
    if (kind == Kind::adopted) adopted_ = rank.transport.adopt(begin_ + kGuard, kMost);
  }
  // The bytes [begin, begin + bytes), in between others of this value.
  Memory fresh(std::size_t begin, std::size_t bytes, std::byte value) {
    std::fill_n(begin_, kMost + 2 * kGuard, value);
    return {begin_ + kGuard + begin, bytes};
  }
  bool has_around(Memory memory, std::byte value) const {
    const auto is_value = [&](std::byte byte) { return byte == value; };
    return std::all_of(begin_, memory.data(), is_value) &&
           std::all_of(memory.data() + memory.size(), begin_ + kMost + 2 * kGuard, is_value);
  }
  const Kind kind;

 private:
  std::vector<std::byte> ordinary_;
  std::byte* begin_;
  std::shared_ptr<void> adopted_;
};

bool are_same(Memory a, Memory b) { return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size()) == 0; }
struct SharedSplit : testing::Test {
  SharedSplit() {
    shm::assume_reading_is_quick(true);
    pair.meet();
  }
  void receive(Memory in, std::uint64_t message = 1) {
    pair.to_first->receive(message, kTag, in.data(), in.size(), {.may_split = true});
    pair.to_first->flush();
  }
  void send(Memory out) { pair.to_second->send(kTag, out.data(), out.size(), kBothCopy); }
  static void fill(Memory out, std::uint64_t seed) {
    for (std::byte& byte : out) byte = std::byte(seed++ * 37 % 251);
  }
  static shm::Lane& lane_to(shm::Segment& own, int from) {
    return *reinterpret_cast<shm::Lane*>(own.at(own.find_lane(1, from)));
  }
  static constexpr std::byte kNothing{0xff};

  ShmPair pair;
};

// Of any length, wherever both ends lie, and whoever is quicker.
TEST_F(SharedSplit, AnyMixtureOfBothIsTheMessage) {
  const bool can_write = lane_to(pair.second->transport.own(), 0).writes != 0;
  std::mt19937_64 random(11);
  std::uint64_t messages = 1;
  std::vector<Room> sources, targets;
  for (const Kind kind : {Kind::ordinary, Kind::symmetric, Kind::adopted}) {
    sources.emplace_back(pair.first, kind);
    targets.emplace_back(*pair.second, kind);
  }
  for (Room& source : sources)
    for (Room& target : targets)
      for (int round = 0; round < (kBrief ? 4 : 20); ++round) {
        if (source.kind == Kind::ordinary && target.kind == Kind::ordinary && !can_write) continue;
        const std::size_t bytes = shm::kReadFromBytes + random() % (kMost - shm::kReadFromBytes - 100);
        const Memory out = source.fresh(random() % 100, bytes, std::byte{1});
        const Memory in = target.fresh(random() % 100, bytes, kNothing);
        fill(out, random());
        const bool posts_first = random() % 2 == 0;
        if (posts_first) receive(in, messages);
        send(out);
        if (!posts_first) receive(in, messages);
        ++messages;
        bool is_here = false;
        for (int i = 0; i < 10'000 && (!is_here || pair.to_second->sent() != messages); ++i) {
          if (random() % 3 != 0) pair.to_second->progress();
          if (random() % 3 == 0) is_here = pair.to_first->received() == messages;
          if (random() % 5 == 0) pair.to_first->flush();
        }
        ASSERT_EQ(pair.to_second->sent(), messages);
        EXPECT_TRUE(are_same(in, out)) << int(source.kind) << ", " << int(target.kind) << ", " << bytes;
        EXPECT_TRUE(target.has_around(in, kNothing)) << int(source.kind) << ", " << int(target.kind);
      }
}

TEST_F(SharedSplit, ARankAloneCopiesAll) {
  std::uint64_t messages = 1;
  for (const bool sender_is_late : {false, true})
    for (const Kind kind : {Kind::symmetric, Kind::adopted}) {
      Room source(pair.first, Kind::symmetric), target(*pair.second, kind);
      const Memory out = source.fresh(0, kMost, std::byte{}), in = target.fresh(0, kMost, kNothing);
      fill(out, messages);
      receive(in, messages);
      send(out);
      for (int i = 0; i < 100; ++i) sender_is_late ? pair.to_first->received() : pair.to_second->sent();
      EXPECT_EQ(pair.to_first->received(), ++messages);
      EXPECT_TRUE(are_same(in, out)) << sender_is_late << ", " << int(kind);
      pair.to_first->flush();
      EXPECT_EQ(pair.to_second->sent(), messages);
    }
}

// More than there are places to share.
TEST_F(SharedSplit, AnyNumberMayBeUnderWay) {
  constexpr std::uint64_t kCount = 3 * shm::kSplits, kLong = kMost / kCount;
  Room source(pair.first, Kind::symmetric), target(*pair.second, Kind::symmetric);
  const Memory out = source.fresh(0, kLong, std::byte{}), in = target.fresh(0, kCount * kLong, kNothing);
  fill(out, 3);
  for (std::uint64_t i = 0; i < kCount; ++i) receive(in.subspan(i * kLong, kLong), 1 + i);
  for (std::uint64_t i = 0; i < kCount; ++i) send(out);
  for (int i = 0; i < 1000 && pair.to_first->received() < 1 + kCount; ++i) {
    pair.to_second->progress();
    pair.to_first->flush();
  }
  for (std::uint64_t i = 0; i < kCount; ++i) EXPECT_TRUE(are_same(in.subspan(i * kLong, kLong), out)) << i;
}

TEST_F(SharedSplit, IsViewedWhereItLies) {
  Room source(pair.first, Kind::symmetric);
  const Memory out = source.fresh(0, 300'000, std::byte{});
  fill(out, 2);
  for (std::uint64_t messages : {2, 3}) {
    send(out);
    std::span<const std::byte> here;
    for (const std::size_t left : {300'000u, 200'000u}) {
      ASSERT_TRUE(pair.to_first->view(kTag, out.size(), here));
      ASSERT_EQ(here.size(), left);
      EXPECT_EQ(std::memcmp(here.data(), out.last(left).data(), left), 0);
      pair.to_first->release(left == 300'000 ? 100'000 : left);
    }
    pair.to_first->flush();
    EXPECT_EQ(pair.to_second->sent(), messages);
  }
}

TEST_F(SharedSplit, NothingIsCopiedOnceARankHasWithdrawn) {
  for (const bool sender : {false, true}) {
    ShmPair other;
    Room source(other.first, Kind::symmetric), target(*other.second, Kind::symmetric);
    const Memory out = source.fresh(0, kMost, std::byte{}), in = target.fresh(0, kMost, kNothing);
    other.to_first->receive(0, kTag, in.data(), in.size(), {.may_split = true});
    other.to_first->flush();
    other.to_second->send(kTag, out.data(), out.size(), kBothCopy);
    EXPECT_TRUE((sender ? other.to_second : other.to_first)->withdraw());
    EXPECT_THROW(sender ? other.to_first->received() : other.to_second->sent(), ChannelClosed);
    EXPECT_EQ(std::ranges::count(in, kNothing), static_cast<std::ptrdiff_t>(kMost));
  }
}

// A wrong peer makes this rank touch no memory but what the peer shares.
TEST_F(SharedSplit, MemoryThatThePeerDoesNotShareIsNeitherReadNorWritten) {
  Room source(pair.first, Kind::symmetric), target(*pair.second, Kind::symmetric);
  receive(target.fresh(0, kMost, kNothing));
  send(source.fresh(0, kMost, std::byte{}));
  shm::Line& line = lane_to(pair.second->transport.own(), 0).lines[1];
  for (const std::uint64_t at : {std::uint64_t{0}, std::uint64_t{1} << 62, shm::kSymmetricOffset - 8}) {
    line.at = at;
    EXPECT_THROW(pair.to_first->received(), ChannelClosed) << at;
  }
  shm::Post& post = lane_to(pair.first.transport.own(), 1).posts[1];
  for (const std::uint64_t at : {std::uint64_t{0}, std::uint64_t{1} << 62, shm::kSymmetricOffset - 8}) {
    post.post.at = at;
    EXPECT_THROW(pair.to_second->sent(), ChannelClosed) << at;
  }
}

}  // namespace
}  // namespace tutti::internal
