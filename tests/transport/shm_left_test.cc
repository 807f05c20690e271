// Messages that lie in their writer's symmetric memory when the writer goes on, or leaves: when they count as
// published, and how long their memory is kept.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <span>
#include <vector>

#include "transport/shm_pair.h"

namespace tutti::internal {
namespace {

constexpr std::size_t kBytes = 1 << 16;

class ShmLeft : public testing::Test {
 protected:
  // Symmetric memory of the first rank, all of whose bytes are `value`.
  std::shared_ptr<std::byte> filled(std::byte value) {
    std::shared_ptr<std::byte> memory = pair_.first.transport.allocate(kBytes);
    std::memset(memory.get(), static_cast<int>(value), kBytes);
    return memory;
  }
  // Whether the second rank gets one such message.
  bool gets(std::byte value) {
    std::vector<std::byte> got(kBytes);
    const std::uint64_t before = pair_.to_first->received();
    pair_.to_first->receive(before, kShmTag, got.data(), kBytes);
    for (int i = 0; i < 100 && pair_.to_first->received() == before; ++i) pair_.to_first->progress();
    pair_.to_first->flush();
    return std::ranges::all_of(got, [&](std::byte byte) { return byte == value; });
  }
  // A first message, with which both have found each other.
  void meet() {
    const auto memory = filled(std::byte{1});
    pair_.to_second->send(kShmTag, memory.get(), kBytes);
    for (int i = 0; i < 100 && pair_.to_second->published() == 0; ++i) pair_.to_second->progress();
    EXPECT_TRUE(gets(std::byte{1}));
    EXPECT_EQ(pair_.to_second->sent(), 1u);
  }
  // The first rank sends such a message, hands its memory to the channel, and ends that. The memory.
  std::weak_ptr<std::byte> leave(std::byte value) {
    auto memory = filled(value);
    const std::weak_ptr<std::byte> watched = memory;
    pair_.to_second->send(kShmTag, memory.get(), kBytes);
    pair_.to_second->keep(std::move(memory));
    pair_.to_second.reset();
    return watched;
  }

  ShmPair pair_;
};

TEST_F(ShmLeft, AMessageIsPublishedOnceThePeerCanReadIt) {
  meet();
  const auto memory = filled(std::byte{2});
  pair_.to_second->send(kShmTag, memory.get(), kBytes);
  EXPECT_EQ(pair_.to_second->published(), 2u);
  EXPECT_EQ(pair_.to_second->sent(), 1u) << "it is still lent";
  EXPECT_TRUE(gets(std::byte{2}));
  EXPECT_EQ(pair_.to_second->sent(), 2u);
}

TEST_F(ShmLeft, AMessageThatHasNoRoomIsNotPublished) {
  meet();
  const auto memory = filled(std::byte{3});
  const std::uint64_t count = shm::kLines + 10;
  for (std::uint64_t i = 0; i < count; ++i) pair_.to_second->send(kShmTag, memory.get(), kBytes);
  EXPECT_GT(pair_.to_second->published(), 1u);
  EXPECT_LT(pair_.to_second->published(), 1 + count);
  for (std::uint64_t i = 0; i < count; ++i) {
    EXPECT_TRUE(gets(std::byte{3}));
    pair_.to_second->progress();
  }
  EXPECT_EQ(pair_.to_second->published(), 1 + count);
}

TEST_F(ShmLeft, MemoryIsKeptUntilThePeerHasReadIt) {
  meet();
  const auto watched = leave(std::byte{5});
  pair_.first.transport.channel(2, 0, 1);
  EXPECT_FALSE(watched.expired());
  EXPECT_TRUE(gets(std::byte{5}));
  pair_.first.transport.channel(3, 0, 1);
  EXPECT_TRUE(watched.expired()) << "it has been read";
}

TEST_F(ShmLeft, MemoryThatThePeerWillNotReadIsNotKept) {
  meet();
  const auto watched = leave(std::byte{6});
  EXPECT_FALSE(watched.expired());
  pair_.to_first.reset();
  pair_.first.transport.channel(2, 0, 1);
  EXPECT_TRUE(watched.expired());
}

// What each way ends with says nothing of the lent messages before it.
TEST_F(ShmLeft, NothingIsKeptOfWhatHasBeenRead) {
  meet();
  auto memory = filled(std::byte{5});
  const std::weak_ptr<std::byte> watched = memory;
  pair_.to_second->send(kShmTag, memory.get(), kBytes);
  EXPECT_TRUE(gets(std::byte{5}));
  const std::byte last{};
  pair_.to_second->send(kShmTag, &last, 1);
  pair_.to_first->send(kShmTag, &last, 1);
  pair_.to_second->keep(std::move(memory));
  EXPECT_TRUE(watched.expired());
}

// Two ends that have gone do not wait for each other.
TEST_F(ShmLeft, NothingIsKeptOnceBothHaveLeft) {
  meet();
  std::shared_ptr<std::byte> mine = filled(std::byte{5}), theirs = pair_.second->transport.allocate(kBytes);
  const std::weak_ptr<std::byte> watched[] = {mine, theirs};
  pair_.to_second->send(kShmTag, mine.get(), kBytes);
  pair_.to_first->send(kShmTag, theirs.get(), kBytes);
  pair_.to_second->keep(std::move(mine));
  pair_.to_first->keep(std::move(theirs));
  pair_.to_second.reset();
  pair_.to_first.reset();
  for (shm::Transport* const transport : {&pair_.first.transport, &pair_.second->transport}) {
    transport->channel(9, transport == &pair_.first.transport ? 0 : 1, transport == &pair_.first.transport ? 1 : 0);
    EXPECT_TRUE(transport->retired().empty());
  }
  EXPECT_TRUE(watched[0].expired() && watched[1].expired());
}

TEST_F(ShmLeft, AMessageThatIsTakenBackIsNotRead) {
  meet();
  const auto memory = filled(std::byte{9});
  pair_.to_second->send(kShmTag, memory.get(), kBytes);
  while (!pair_.to_second->withdraw()) {
  }
  std::span<const std::byte> here;
  EXPECT_THROW(pair_.to_first->view(kShmTag, kBytes, here), ChannelClosed);
}

// The reader reads it; nobody writes to it.
TEST_F(ShmLeft, AdoptedMemoryOfAWriterThatHasGoneStaysAdopted) {
  meet();
  std::vector<std::byte> adopted(1 << 20);
  shm::Transport& leaves = pair_.second->transport;
  const auto adoption = leaves.adopt(adopted.data(), adopted.size());
  std::shared_ptr<std::byte> memory = leaves.allocate(kBytes);
  pair_.to_first->send(kShmTag, memory.get(), kBytes);
  pair_.to_first->keep(std::move(memory));
  const std::shared_ptr<shm::Segment> own = shm::Segment::find(leaves.own().number());
  pair_.to_first.reset();
  pair_.second.reset();
  shm::Place place;
  EXPECT_TRUE(own->holds(adopted.data() + 8192, 4096, place));
}

// The second end to close does not write to the lane of the first, which has been freed.
TEST_F(ShmLeft, ChannelsThatHaveEndedTakeNoMemory) {
  const auto pages_of = [&] {
    struct stat status {};
    EXPECT_EQ(fstat(pair_.first.transport.own().fd(), &status), 0);
    return status.st_blocks / 8;
  };
  const auto use_one = [&](std::uint64_t communicator) {
    auto to_second = pair_.first.transport.channel(communicator, 0, 1);
    auto to_first = pair_.second->transport.channel(communicator, 1, 0);
    const std::byte one{};
    to_second->send(kShmTag, &one, 1);
    to_first->send(kShmTag, &one, 1);
    std::span<const std::byte> here;
    for (Channel* const channel : {to_second.get(), to_first.get()}) {
      ASSERT_TRUE(channel->view(kShmTag, 1, here));
      channel->release(1);
    }
    to_second.reset();
    to_first.reset();
  };
  use_one(100);
  const auto before = pages_of();
  for (std::uint64_t communicator = 101; communicator < 150; ++communicator) use_one(communicator);
  EXPECT_EQ(pages_of(), before);
}

TEST_F(ShmLeft, MemoryOutlivesItsWriter) {
  meet();
  std::shared_ptr<std::byte> memory = pair_.second->transport.allocate(kBytes);
  std::memset(memory.get(), 8, kBytes);
  pair_.to_first->send(kShmTag, memory.get(), kBytes);
  EXPECT_EQ(pair_.to_first->published(), 1u);
  pair_.to_first->keep(std::move(memory));
  pair_.to_first.reset();
  pair_.second.reset();
  std::span<const std::byte> here;
  ASSERT_TRUE(pair_.to_second->view(kShmTag, kBytes, here));
  EXPECT_EQ(here.size(), kBytes);
  EXPECT_TRUE(std::ranges::all_of(here, [](std::byte byte) { return byte == std::byte{8}; }));
  pair_.to_second->release(kBytes);
}

}  // namespace
}  // namespace tutti::internal
