// The announcements of a lane: how many messages may be on their way, and in which order they come.
#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <iterator>
#include <random>

#include "transport/shm_reuse.h"

namespace tutti::internal {
namespace {

static_assert(shm::kLaneHeadBytes == 120 << 10, "docs/design/shared_memory.md says so");

class ShmLines : public ReuseOfSpace {};

bool has_room(Channel& channel, const Bytes& bytes) {
  const std::uint64_t before = channel.sent();
  channel.send(kShmTag, bytes.data(), bytes.size());
  return channel.sent() == before + 1;
}

// How many messages, all of `bytes`, find room before the peer reads one.
std::uint32_t room_for(Channel& to, std::size_t bytes) {
  const Bytes one = message(bytes, 1);
  std::uint32_t sent = 0;
  while (has_room(to, one)) ++sent;
  return sent;
}

TEST_P(ShmLines, AShortMessageFindsAllOfThemAndALongOneTheFirstRow) {
  EXPECT_EQ(room_for(*pair.to_second, 8), shm::kLines);
  ShmPair fresh(GetParam());
  const Bytes long_one = message(shm::kInlineBytes + 1, 1);
  for (unsigned i = 0; i < shm::kLines; ++i) {  // the first round goes through all of them
    send(*fresh.to_second, long_one);
    read(*fresh.to_first, long_one);
  }
  EXPECT_EQ(room_for(*fresh.to_second, long_one.size()), shm::kRow);
}

// Short and long ones in any order, by turns more than there is room for and fewer.
TEST_P(ShmLines, MessagesOfAllLengthsComeInOrder) {
  constexpr std::size_t kLengths[] = {0, 8, 8, 8, shm::kInlineBytes, shm::kInlineBytes + 1, kShort};
  for (unsigned seed = 0; seed < 20; ++seed) {
    std::mt19937 random(seed);
    ShmPair fresh(GetParam());
    std::deque<Bytes> on_their_way;
    std::uint64_t been_read = 0, most_unread = 0;
    for (unsigned i = 0; i < 2000 || !on_their_way.empty(); ++i) {
      const bool writer_leads = i < 2000 && i / 200 % 2 == 0;
      if (i < 2000 && random() % 100 < (writer_leads ? 70u : 30u)) {
        on_their_way.push_back(message(kLengths[random() % std::size(kLengths)], i));
        fresh.to_second->send(kShmTag, on_their_way.back().data(), on_their_way.back().size());
        most_unread = std::max(most_unread, fresh.to_second->sent() - been_read);
      } else if (!on_their_way.empty()) {
        fresh.to_second->progress();
        ASSERT_NE(read(*fresh.to_first, on_their_way.front()), nullptr) << "seed " << seed << ", step " << i;
        on_their_way.pop_front();
        ++been_read;
      }
    }
    EXPECT_GT(most_unread, shm::kRow) << "seed " << seed << " has not tried the lines behind the first row";
  }
}

// Memory where no line has been looks like one whose number is about to wrap around.
TEST_P(ShmLines, NothingArrivesBeforeItIsSent) {
  const Bytes long_one = message(shm::kInlineBytes + 1, 1), short_one = message(8, 2);
  for (unsigned long_ones = 0; long_ones < 8 * shm::kLines; long_ones += 15) {
    ShmPair fresh(GetParam());
    for (unsigned i = 0; i < long_ones + 2 * shm::kLines; ++i) {
      std::span<const std::byte> here;
      const Bytes& next = i < long_ones ? long_one : short_one;
      ASSERT_FALSE(fresh.to_first->view(kShmTag, next.size(), here)) << long_ones << " long ones, message " << i;
      ASSERT_NO_FATAL_FAILURE(send(*fresh.to_second, next));
      ASSERT_NE(read(*fresh.to_first, next), nullptr) << long_ones << " long ones, message " << i;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Rings, ShmLines, all_rings());

}  // namespace
}  // namespace tutti::internal
