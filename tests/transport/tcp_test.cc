// The edges of a TCP channel, with a test in the place of the peer.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "transport/header.h"
#include "transport/tcp/transport.h"

namespace tutti::internal {
namespace {

constexpr std::uint64_t kCommunicator = 7;
constexpr int kPeer = 3;
const Tag kTag{{11, 12}};

class TcpChannel : public testing::Test {
 protected:
  TcpChannel() {
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends) != 0) throw std::runtime_error("socketpair");
    peer_ = ends[1];
    mine_ = ends[0];
  }
  ~TcpChannel() override {
    if (peer_ >= 0) close(peer_);
  }
  void attach() { transport_.attach(kCommunicator, kPeer, mine_); }
  void hang_up() { close(std::exchange(peer_, -1)); }

  Header header(std::size_t bytes, std::uint64_t message = 0) const {
    Header h;
    h.communicator = kCommunicator;
    h.tag = kTag;
    h.message = message;
    h.length = h.total = bytes;
    return h;
  }
  void write_to_channel(std::span<const std::byte> bytes) const {
    ASSERT_EQ(::write(peer_, bytes.data(), bytes.size()), static_cast<ssize_t>(bytes.size()));
  }

  // What a channel that waits for `bytes` bytes says of its peer.
  std::string complaint(std::size_t bytes = 8, std::uint64_t message = 0) {
    std::vector<std::byte> in(bytes);
    channel_->receive(message, kTag, in.data(), bytes);
    try {
      for (int i = 0; i < 10; ++i) channel_->received();
    } catch (const ChannelClosed& closed) {
      EXPECT_EQ(closed.peer, kPeer);
      EXPECT_THROW(channel_->progress(), ChannelClosed) << "it stays closed";
      return closed.why;
    }
    return "";
  }

  Sleeper sleeper_;
  tcp::Transport transport_{sleeper_};
  std::unique_ptr<Channel> channel_ = transport_.channel(kCommunicator, 0, kPeer);
  int mine_ = -1, peer_ = -1;
};

TEST_F(TcpChannel, MessagesQueueUntilAttachedAndGoAsHeaderAndPayload) {
  const std::byte out[3] = {std::byte{1}, std::byte{2}, std::byte{3}};
  channel_->send(kTag, out, 3);
  channel_->send(kTag, nullptr, 0);
  EXPECT_EQ(channel_->sent(), 0u);
  std::thread control([&] { attach(); });
  control.join();
  EXPECT_EQ(channel_->sent(), 2u);
  std::vector<std::byte> wire(200), expected;
  wire.resize(static_cast<std::size_t>(::read(peer_, wire.data(), wire.size())));
  for (const std::byte byte : header(3).encode()) expected.push_back(byte);
  expected.insert(expected.end(), out, out + 3);
  for (const std::byte byte : header(0, 1).encode()) expected.push_back(byte);
  EXPECT_EQ(wire, expected);
}

TEST_F(TcpChannel, AConnectionThatComesBeforeItsChannelWaits) {
  channel_.reset();
  attach();
  channel_ = transport_.channel(kCommunicator, 0, kPeer);
  write_to_channel(header(0).encode());
  channel_->receive(0, kTag, nullptr, 0);
  EXPECT_EQ(channel_->received(), 1u);
}

TEST_F(TcpChannel, OnlyTheFirstConnectionIsKept) {
  int ends[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends), 0);
  attach();
  transport_.attach(kCommunicator, kPeer, ends[0]);
  EXPECT_EQ(fcntl(ends[0], F_GETFD), -1) << "the second is closed";
  close(ends[1]);
  write_to_channel(header(0).encode());
  channel_->receive(0, kTag, nullptr, 0);
  EXPECT_EQ(channel_->received(), 1u);
}

TEST_F(TcpChannel, AMessageMayArriveByteByByte) {
  attach();
  const std::byte payload[5] = {};
  for (const bool by_view : {false, true}) {
    std::vector<std::byte> in(5, std::byte{9});
    if (!by_view) channel_->receive(0, kTag, in.data(), 5);
    const auto bytes = header(5, by_view ? 1 : 0).encode();
    std::size_t seen = 0;
    const auto turn = [&] {
      channel_->progress();
      std::span<const std::byte> here;
      if (!by_view || !channel_->view(kTag, 5, here)) return;
      EXPECT_EQ(here.size(), 1u);
      seen += here.size();
      channel_->release(here.size());
    };
    for (const std::byte byte : bytes) write_to_channel({&byte, 1}), turn();
    EXPECT_EQ(in[0], std::byte{9});
    for (const std::byte byte : payload) write_to_channel({&byte, 1}), turn();
    EXPECT_EQ(seen, by_view ? 5u : 0u);
    EXPECT_EQ(channel_->received(), 1u);
  }
}

// A small socket buffer cuts messages of every size somewhere else.
TEST_F(TcpChannel, AMessageIsGivenBackOnlyOnceTheKernelHasAllOfIt) {
  const int least = 1;
  setsockopt(mine_, SOL_SOCKET, SO_SNDBUF, &least, sizeof least);
  attach();
  std::vector<std::byte> out(8000), wire(10'000);
  std::uint64_t messages = 0, cut = 0;
  for (std::size_t bytes = 0; bytes < out.size(); bytes += 29, ++messages) {
    channel_->send(kTag, out.data(), bytes);
    std::size_t arrived = 0;
    for (;;) {
      const bool given_back = channel_->sent() > messages;
      for (ssize_t k; (k = ::read(peer_, wire.data(), wire.size())) > 0;) arrived += static_cast<std::size_t>(k);
      ASSERT_EQ(given_back, arrived == Header::kBytes + bytes) << bytes;
      if (given_back) break;
      ++cut;
    }
  }
  EXPECT_GT(cut, 100u) << "hardly a message was cut";
}

TEST_F(TcpChannel, NothingIsReadBeforeItIsClaimed) {
  attach();
  write_to_channel(header(0).encode());
  EXPECT_FALSE(channel_->progress());
  std::byte waiting[Header::kBytes];
  EXPECT_EQ(recv(mine_, waiting, sizeof waiting, MSG_PEEK), static_cast<ssize_t>(Header::kBytes));
}

TEST_F(TcpChannel, AnEndBetweenMessagesIsSaid) {
  attach();
  hang_up();
  EXPECT_EQ(complaint(), "the peer closed the connection");
}

TEST_F(TcpChannel, AnEndInsideAHeaderOrAMessageIsSaid) {
  attach();
  const auto bytes = header(8).encode();
  write_to_channel(std::span(bytes).first(20));
  hang_up();
  EXPECT_EQ(complaint(), "the peer closed the connection in the middle of a message");
}

TEST_F(TcpChannel, AnEndInsideALargeMessageIsSaid) {
  attach();
  write_to_channel(header(100'000).encode());
  write_to_channel(std::vector<std::byte>(500));
  hang_up();
  EXPECT_EQ(complaint(100'000), "the peer closed the connection in the middle of a message");
}

TEST_F(TcpChannel, SendingToAPeerThatHasGoneIsAnErrorNotASignal) {
  attach();
  hang_up();
  const std::byte out{};
  EXPECT_THROW(channel_->send(kTag, &out, 1), ChannelClosed);
  EXPECT_THROW(channel_->sent(), ChannelClosed);
}

TEST_F(TcpChannel, GarbageIsRefused) {
  attach();
  write_to_channel(std::vector<std::byte>(100, std::byte{'G'}));
  EXPECT_EQ(complaint(), "the peer sent something that is not a message of version 1");
}

TEST_F(TcpChannel, AnotherCommunicatorIsRefused) {
  attach();
  Header h = header(8);
  h.communicator = 8;
  write_to_channel(h.encode());
  EXPECT_EQ(complaint(), "the peer sent a message of another communicator");
}

TEST_F(TcpChannel, AMessageOutOfTurnOrInPartsIsRefused) {
  attach();
  write_to_channel(header(8, 2).encode());
  EXPECT_EQ(complaint(), "the peer sent message 2 or a part of it where all of message 0 was due");
}

TEST_F(TcpChannel, AConnectionThatCannotBeMadeIsAnErrorForWhoeverWaits) {
  transport_.fail(kCommunicator, kPeer, "connection refused");
  EXPECT_NO_THROW(channel_->progress());
  EXPECT_EQ(complaint(), "connection refused");
  const std::byte out{};
  EXPECT_THROW(channel_->send(kTag, &out, 1), ChannelClosed);
  close(mine_);
}

TEST_F(TcpChannel, WhatHasArrivedIsDeliveredEvenAfterFailure) {
  attach();
  write_to_channel(header(20'000).encode());
  write_to_channel(std::vector<std::byte>(20'000, std::byte{1}));
  transport_.fail(kCommunicator, kPeer, "its process died");
  std::vector<std::byte> in(20'000);
  channel_->receive(0, kTag, in.data(), in.size());
  for (int i = 0; i < 3 && channel_->received() == 0; ++i) continue;
  EXPECT_EQ(in, std::vector<std::byte>(20'000, std::byte{1}));
  EXPECT_EQ(complaint(8, 1), "its process died");
}

TEST_F(TcpChannel, NewsOfTheConnectionWakesTheSleeper) {
  for (const bool good : {true, false}) {
    std::thread control([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
      good ? attach() : transport_.fail(kCommunicator, kPeer, "lost");
    });
    const auto start = std::chrono::steady_clock::now();
    sleeper_.sleep(std::chrono::seconds(20));
    EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(10));
    control.join();
  }
}

// The window in which a view is shown slides over the buffer's end again and again.
TEST_F(TcpChannel, AViewIsContiguousAcrossTheBuffersEnd) {
  attach();
  constexpr std::size_t kBytes = 3'000'000;
  std::vector<std::byte> out(kBytes);
  for (std::size_t i = 0; i < kBytes; ++i) out[i] = static_cast<std::byte>(i * 2654435761u >> 16);
  std::size_t written = 0, seen = 0;
  write_to_channel(header(kBytes).encode());
  for (int turn = 0; seen < kBytes; ++turn) {
    ASSERT_LT(turn, 1'000'000);
    const ssize_t k = ::write(peer_, out.data() + written, kBytes - written);
    if (k > 0) written += static_cast<std::size_t>(k);
    std::span<const std::byte> here;
    if (!channel_->view(kTag, kBytes, here)) continue;
    ASSERT_LE(seen + here.size(), written);
    ASSERT_TRUE(std::equal(here.begin(), here.end(), out.begin() + static_cast<std::ptrdiff_t>(seen)));
    const std::size_t kept = std::min<std::size_t>(here.size() / 2, turn % 3 == 0 ? 20'000 : 7);
    const std::size_t taken = seen + here.size() == kBytes ? here.size() : here.size() - kept;
    seen += taken;
    channel_->release(taken);
  }
}

}  // namespace
}  // namespace tutti::internal
