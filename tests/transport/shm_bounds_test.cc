// What a peer says of where its bytes lie is checked before it is touched: each of these would be a crash, or memory
// that is not the channel's.
#include <dirent.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <functional>
#include <memory>
#include <vector>

#include "transport/shm/handover.h"
#include "transport/shm/transport.h"
#include "tutti/error.h"

namespace tutti::internal {
namespace {

constexpr std::uint64_t kCommunicator = 1;
constexpr std::size_t kBytes = 8192;
const Tag kTag{{1, 2}};

struct Rank {
  Sleeper sleeper;
  shm::Transport transport{sleeper};
};

// Rank 0, and what rank 1 writes to it, by hand.
struct WrongPeer {
  Rank rank, peer;
  std::unique_ptr<Channel> channel, peers_channel;
  WrongPeer() {
    std::array<int, 2> ends{-1, -1};
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends.data()), 0);
    rank.transport.attach(1, ends[0]);
    peer.transport.attach(0, ends[1]);
    channel = rank.transport.channel(kCommunicator, 0, 1);
    peers_channel = peer.transport.channel(kCommunicator, 1, 0);
  }
  shm::Lane& lane() {
    shm::Segment& own = rank.transport.own();
    return *reinterpret_cast<shm::Lane*>(own.at(own.find_lane(kCommunicator, 1)));
  }
  void write(std::uint32_t number, shm::LineKind kind, std::uint64_t total, std::uint64_t at, std::uint64_t bytes,
             shm::PostedAt post = {}) {
    shm::Line& line = lane().lines[number % shm::kRow];
    line.tag[0] = kTag.word[0];
    line.tag[1] = kTag.word[1];
    line.kind_and_total = (static_cast<std::uint64_t>(kind) << 48) | total;
    if (kind != shm::LineKind::inside) {
      line.at = at;
      line.bytes = bytes;
      line.post = post;
    }
    line.stamp = (static_cast<std::uint64_t>(shm::kFirstLine) << 32) | (number + 1);
  }
};

struct Wrong {
  const char* what;
  shm::LineKind kind;
  std::uint64_t at, bytes;
};

std::vector<Wrong> wrong_lines() {
  using shm::LineKind;
  constexpr std::uint64_t kAll = ~std::uint64_t{0};
  static std::byte memory[kBytes];
  const auto own = reinterpret_cast<std::uintptr_t>(memory);
  return {{"a line that ends beyond itself", LineKind::inside, 0, 0},
          {"a ring that begins beyond its end", LineKind::ring, shm::kMinRingBytes + 64, 64},
          {"a ring that ends beyond its end", LineKind::ring, shm::kMinRingBytes - 64, 128},
          {"a ring at the end of all addresses", LineKind::ring, kAll - 63, 128},
          {"a ring that nobody has claimed", LineKind::ring, shm::kMinRingBytes - 4096, 4096},
          {"a ring that begins within its end", LineKind::ring, shm::kMinRingBytes - 64, kBytes},
          {"a ring of all addresses", LineKind::ring, kAll - 63, kBytes},
          {"all of it in a ring that nobody has claimed", LineKind::ring, 0, kBytes},
          {"more bytes than the message has", LineKind::ring, 0, kBytes + 1},
          {"where this rank has written nothing", LineKind::reused, shm::kFirstLine, 64},
          {"all of it where this rank has written nothing", LineKind::reused, shm::kFirstLine, kBytes},
          {"no bytes where this rank has written nothing", LineKind::reused, shm::kFirstLine - 1, 0},
          {"a line that there is not", LineKind::reused, kAll, 64},
          {"memory beyond the mapping", LineKind::lent, shm::kSlots * shm::kSlotBytes, kBytes},
          {"memory at the end of all addresses", LineKind::lent, kAll - 63, kBytes},
          {"memory that the peer does not have", LineKind::lent, shm::kSymmetricOffset + (64 << 20), kBytes},
          {"memory that is not symmetric", LineKind::lent, 0, kBytes},
          {"more bytes than are asked for", LineKind::lent, shm::kSymmetricOffset, kBytes + 1},
          {"fewer bytes than are asked for", LineKind::readable, own, kBytes - 1},
          {"a kind that there is not", static_cast<LineKind>(77), 0, kBytes}};
}

TEST(ShmBounds, ALineThatPointsOutsideIsRefusedByReceive) {
  for (const Wrong& wrong : wrong_lines()) {
    WrongPeer pair;
    std::vector<std::byte> in(kBytes);
    pair.write(shm::kFirstLine, wrong.kind, kBytes, wrong.at, wrong.bytes);
    pair.channel->receive(0, kTag, in.data(), in.size());
    EXPECT_THROW(pair.channel->received(), ChannelClosed) << wrong.what;
  }
}

TEST(ShmBounds, ALineThatPointsOutsideIsRefusedByView) {
  for (const Wrong& wrong : wrong_lines()) {
    WrongPeer pair;
    pair.write(shm::kFirstLine, wrong.kind, kBytes, wrong.at, wrong.bytes);
    std::span<const std::byte> here;
    EXPECT_THROW(pair.channel->view(kTag, kBytes, here), ChannelClosed) << wrong.what;
  }
}

// Whoever only looks hears of nothing; the next one who waits for it does.
TEST(ShmBounds, ALineThatPointsOutsideIsNotTakenAtOnce) {
  for (const Wrong& wrong : wrong_lines()) {
    WrongPeer pair;
    const std::byte out[8]{};
    pair.channel->send(kTag, out, sizeof out);  // which connects
    pair.write(shm::kFirstLine, wrong.kind, kBytes, wrong.at, wrong.bytes);
    EXPECT_EQ(pair.channel->look_at_once(kTag, kBytes), nullptr) << wrong.what;
    std::span<const std::byte> here;
    EXPECT_THROW(pair.channel->view(kTag, kBytes, here), ChannelClosed) << wrong.what;
  }
}

// What the peer may write to is as long as what this rank wrote there, and comes back once.
TEST(ShmBounds, AFragmentInThisRanksRingIsRefusedWhereThereCanBeNone) {
  for (const bool is_twice : {false, true}) {
    WrongPeer pair;
    const std::vector<std::byte> out(kBytes / 2);
    pair.channel->send(kTag, out.data(), out.size());
    EXPECT_EQ(pair.channel->sent(), 1u);
    const std::uint64_t bytes = is_twice ? kBytes / 2 : kBytes;
    pair.write(shm::kFirstLine, shm::LineKind::reused, kBytes, shm::kFirstLine, bytes);
    if (is_twice) pair.write(shm::kFirstLine + 1, shm::LineKind::reused, kBytes, shm::kFirstLine, bytes);
    std::vector<std::byte> in(kBytes);
    pair.channel->receive(0, kTag, in.data(), in.size());
    EXPECT_THROW(pair.channel->received(), ChannelClosed) << is_twice;
  }
}

// The system knows that there is nothing, so the message is declined; and then what the peer shows is checked.
TEST(ShmBounds, PrivateMemoryThatIsNotThereIsDeclined) {
  for (const std::uint64_t at : {std::uint64_t{4096}, ~std::uint64_t{0} - 63}) {
    WrongPeer pair;
    std::vector<std::byte> in(kBytes);
    pair.write(shm::kFirstLine, shm::LineKind::readable, kBytes, at, kBytes);
    pair.channel->receive(0, kTag, in.data(), in.size());
    EXPECT_EQ(pair.channel->received(), 0u);
    shm::Segment& theirs = pair.peer.transport.own();
    const auto& lane = *reinterpret_cast<shm::Lane*>(theirs.at(theirs.find_lane(kCommunicator, 0)));
    EXPECT_EQ(lane.decline.line.load(), shm::declined(shm::kFirstLine));
  }
}
TEST(ShmBounds, APieceOutsideOfThePeersMemoryIsNotRead) {
  struct {
    std::uint64_t at, bytes;
  } const wrong[] = {{0, kBytes},
                     {shm::kSlots * shm::kSlotBytes, kBytes},
                     {~std::uint64_t{0} - 63, kBytes},
                     {shm::kSymmetricOffset + (64 << 20), kBytes},
                     {shm::kSymmetricOffset, kBytes + 1},
                     {shm::kSymmetricOffset, 0}};
  for (const auto& [at, bytes] : wrong) {
    WrongPeer pair;
    std::vector<std::byte> in(kBytes);
    pair.peer.transport.own().allocate(2 * kBytes);
    pair.write(shm::kFirstLine, shm::LineKind::readable, kBytes, 4096, kBytes);
    pair.channel->receive(0, kTag, in.data(), in.size());
    EXPECT_EQ(pair.channel->received(), 0u);
    shm::Piece& piece = pair.lane().piece;
    piece.at = at;
    piece.bytes = bytes;
    piece.number = 1;
    EXPECT_THROW(pair.channel->received(), ChannelClosed) << at << ", " << bytes;
  }
}

// It has shown one thing, and now says another of the same line.
TEST(ShmBounds, ALineThatIsChangedWhileItIsViewedStaysAsItWas) {
  constexpr std::size_t kLong = shm::kMinRingBytes;
  for (const auto kind : {shm::LineKind::readable, shm::LineKind::ring, shm::LineKind::inside}) {
    WrongPeer pair;
    pair.peer.transport.find(0)->segment->claim(
        pair.rank.transport.own().find_lane(kCommunicator, 1) + shm::kLaneHeadBytes, shm::kMinRingBytes);
    pair.write(shm::kFirstLine, shm::LineKind::ring, kLong, 0, kLong);
    std::span<const std::byte> first, then;
    ASSERT_TRUE(pair.channel->view(kTag, kLong, first));
    ASSERT_EQ(first.size(), kLong);
    pair.channel->release(4096);
    pair.write(shm::kFirstLine, kind, kLong, 0, 64);
    ASSERT_TRUE(pair.channel->view(kTag, kLong, then));
    EXPECT_EQ(then.data(), first.data() + 4096);
    EXPECT_EQ(then.size(), kLong - 4096);
  }
}

TEST(ShmBounds, FragmentsAreNoMoreThanTheirMessage) {
  WrongPeer pair;
  std::vector<std::byte> in(kBytes);
  pair.peer.transport.find(0)->segment->claim(
      pair.rank.transport.own().find_lane(kCommunicator, 1) + shm::kLaneHeadBytes, shm::kMinRingBytes);
  pair.write(shm::kFirstLine, shm::LineKind::ring, kBytes, 0, kBytes - 64);
  pair.write(shm::kFirstLine + 1, shm::LineKind::ring, kBytes, kBytes, 128);
  pair.channel->receive(0, kTag, in.data(), in.size());
  EXPECT_THROW(pair.channel->received(), ChannelClosed);
}

// This rank may write to all of the space of a fragment that it has read.
TEST(ShmBounds, TheSpaceOfAFragmentLiesInTheRing) {
  constexpr std::size_t kFragment = 20'000;
  ASSERT_GT(shm::space_of(kFragment), kFragment + 32);
  for (const bool fits : {true, false}) {
    WrongPeer pair;
    std::vector<std::byte> in(kFragment);
    pair.peer.transport.find(0)->segment->claim(
        pair.rank.transport.own().find_lane(kCommunicator, 1) + shm::kLaneHeadBytes, shm::kMinRingBytes);
    const std::size_t at = shm::kMinRingBytes - (fits ? shm::space_of(kFragment) : kFragment + 32);
    pair.write(shm::kFirstLine, shm::LineKind::ring, kFragment, at, kFragment);
    pair.channel->receive(0, kTag, in.data(), in.size());
    if (fits) {
      EXPECT_EQ(pair.channel->received(), 1u);
    } else {
      EXPECT_THROW(pair.channel->received(), ChannelClosed);
    }
  }
}

TEST(ShmBounds, APlaceOutsideOfThePeersMemoryIsNotWritten) {
  for (const std::uint64_t at : {std::uint64_t{0}, std::uint64_t{shm::kSlots * shm::kSlotBytes}, shm::kPrivate - 64,
                                 std::uint64_t{shm::kSymmetricOffset + (64 << 20)}}) {
    WrongPeer pair;
    pair.peer.transport.own().allocate(kBytes);
    shm::Post& post = pair.lane().posts[0];
    post.tag[0] = kTag.word[0];
    post.tag[1] = kTag.word[1];
    post.post = {1, at, kBytes};
    post.stamp = 1;
    EXPECT_THROW(pair.channel->reserve(kTag, kBytes), ChannelClosed) << at;
    std::vector<std::byte> out(kBytes);
    EXPECT_THROW(pair.channel->send(kTag, out.data(), out.size()), ChannelClosed) << at;
  }
}

TEST(ShmBounds, ALaneOutsideOfThePeersMemoryIsNotWritten) {
  for (const std::uint64_t at : {std::uint64_t{shm::kSlots * shm::kSlotBytes}, ~std::uint64_t{0} - 4095,
                                 std::uint64_t{shm::kLanesOffset + 8}, std::uint64_t{shm::kLanesOffset + (1 << 30)}}) {
    WrongPeer pair;
    pair.peer.transport.own().directory()[0].offset = at;
    const std::byte out[8]{};
    EXPECT_THROW(pair.channel->send(kTag, out, sizeof out), ChannelClosed) << at;
  }
}

int open_files() {
  DIR* open = opendir("/proc/self/fd");
  int count = 0;
  while (readdir(open)) ++count;
  closedir(open);
  return count;
}

// Sends what is no greeting, with `count` descriptors.
void send_descriptors(int socket, int count) {
  alignas(cmsghdr) char control[CMSG_SPACE(8 * sizeof(int))] = {};
  char words[] = "no greeting";
  iovec bytes{words, sizeof words};
  msghdr message{};
  message.msg_iov = &bytes;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = CMSG_SPACE(count * sizeof(int));
  cmsghdr* rights = CMSG_FIRSTHDR(&message);
  rights->cmsg_level = SOL_SOCKET;
  rights->cmsg_type = SCM_RIGHTS;
  rights->cmsg_len = CMSG_LEN(count * sizeof(int));
  for (int i = 0; i < count; ++i) std::memcpy(CMSG_DATA(rights) + i * sizeof(int), &socket, sizeof(int));
  ASSERT_GT(sendmsg(socket, &message, 0), 0);
}

TEST(ShmBounds, DescriptorsThatComeWithAWrongHandOverAreClosed) {
  for (const int count : {1, 2, 3, 8}) {
    std::array<int, 2> ends{-1, -1};
    ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends.data()), 0);
    send_descriptors(ends[1], count);
    const int before = open_files();
    EXPECT_THROW(shm::take(ends[0], 1), Error);
    EXPECT_EQ(open_files(), before) << count;
    for (const int end : ends) close(end);
  }
}

// A program may have closed its standard streams: what is then printed must not go into a socket of ours.
TEST(ShmBounds, NoDescriptorTakesTheNumberOfAStandardStream) {
  std::array<int, 2> ends{-1, -1};
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends.data()), 0);
  const pid_t child = fork();
  if (child == 0) {
    for (const int fd : {0, 1, 2}) close(fd);
    Rank first, second;
    first.transport.attach(1, ends[0]);
    second.transport.attach(0, ends[1]);
    if (first.transport.find(1) == nullptr) _exit(1);
    for (const int fd : {0, 1, 2})
      if (fcntl(fd, F_GETFD) >= 0) _exit(10 + fd);
    _exit(0);
  }
  for (const int end : ends) close(end);
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0) << "10 + the descriptor that was taken";
}

}  // namespace
}  // namespace tutti::internal
