#include "run/node_message.h"

#include <gtest/gtest.h>

#include "documented.h"

namespace tutti::internal::tools {
namespace {

// The worked example of docs/reference/protocols.md.
TEST(NodeMessage, IsAsDocumented) {
  const NodeMessage message{NodeMessage::Kind::failed, 2, 1, "rank 3 exited with status 5"};
  EXPECT_EQ(in_hex(encode(message)), documented("failure"));
}

TEST(NodeMessage, ComesBackTheSameHoweverTheBytesAreSplit) {
  std::vector<std::byte> stream;
  for (int kind = 0; kind <= static_cast<int>(NodeMessage::Kind::over); ++kind) {
    const auto bytes = encode({static_cast<NodeMessage::Kind>(kind), kind, -kind, std::string(kind * 10, 'x')});
    stream.insert(stream.end(), bytes.begin(), bytes.end());
  }
  for (std::size_t piece = 1; piece <= stream.size(); ++piece) {
    NodeFrames frames;
    int count = 0;
    for (std::size_t at = 0; at < stream.size(); at += piece) {
      frames.feed(std::span(stream).subspan(at, std::min(piece, stream.size() - at)));
      while (const auto message = frames.next()) {
        EXPECT_EQ(static_cast<int>(message->kind), count);
        EXPECT_EQ(message->attempt, count);
        EXPECT_EQ(message->status, -count);
        EXPECT_EQ(message->words, std::string(count * 10, 'x'));
        ++count;
      }
    }
    ASSERT_FALSE(frames.broken());
    ASSERT_EQ(count, 8);
  }
}

TEST(NodeMessage, WhatIsNotWellFormedBreaksTheStream) {
  const auto is_broken = [](std::size_t at, std::byte value) {
    auto bytes = encode({NodeMessage::Kind::end, 1, 1, "why"});
    bytes[at] = value;
    NodeFrames frames;
    frames.feed(bytes);
    EXPECT_FALSE(frames.next());
    return frames.broken();
  };
  EXPECT_TRUE(is_broken(0, std::byte{3}));      // shorter than any message
  EXPECT_TRUE(is_broken(2, std::byte{1}));      // too long
  EXPECT_TRUE(is_broken(4, std::byte{8}));      // no such kind
  EXPECT_TRUE(is_broken(13, std::byte{2}));     // words end before the frame does
  EXPECT_TRUE(is_broken(16, std::byte{0xff}));  // or behind it
}

}  // namespace
}  // namespace tutti::internal::tools
