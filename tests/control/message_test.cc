#include "control/message.h"

#include <gtest/gtest.h>

#include <random>

#include "documented.h"

namespace tutti::internal {
namespace {

Member member_of(int rank) {
  return {rank, "boot/1",   "10.0.0." + std::to_string(rank), 4711, "tutti-x", 1000 + rank,
          77,   4026531836, std::string("\x03\0\x01", 3)};
}

std::vector<ControlMessage> one_of_each() {
  Notice notice;
  notice.kind = Notice::Kind::answer;
  notice.peer = 3;
  notice.communicator = 0xfedcba9876543210;
  notice.code = ErrorCode::aborted;
  notice.message = std::string("a \0 b", 5);
  notice.serial = 12;
  notice.about = 2;
  notice.ranks = {1, 3};
  notice.authority = Authority::minority;
  notice.sequence = 99;
  notice.entered = true;
  notice.call = Tag{{1, 2}};
  notice.last = Tag{{3, ~std::uint64_t{0}}};
  Digest salt;
  salt.fill(std::byte{0xa5});
  return {Introduction{member_of(5), 8, 600'000, 5'000, "auto", 3},
          Table{salt, {member_of(0), member_of(1)}, "what rank 0 says"},
          Refusal{ErrorCode::invalid_argument, -1, "no", true},
          Waiting{"ranks 1 and 2"},
          Ping{},
          Goodbye{},
          Probe{1, 2, 3, 4, 5},
          Answer{7, notice},
          notice,
          Farewell{1, 2, 3, {4, 5, Tag{{6, 7}}}, 8, 9, true, {{10, {11, 12, Tag{{13, 14}}}}}, true, {{7, Tag{{8, 9}}}}},
          Enlistment{3},
          Death{2},
          Summons{true},
          Survey{1, 2, 3, {4, 5}},
          Vote{6, {7, 8, 9}, Vote::On::making, true, 1},
          Desertion{},
          Withdrawal{3},
          Recall{6, Vote::On::making, 2},
          LifeSign{true}};
}

TEST(ControlMessage, EveryKindComesBackTheSameHoweverTheBytesAreSplit) {
  std::vector<std::byte> stream;
  for (const auto& message : one_of_each()) {
    const auto bytes = encode(message);
    stream.insert(stream.end(), bytes.begin(), bytes.end());
  }
  for (std::size_t piece = 1; piece <= stream.size(); piece += piece < 70 ? 1 : 97) {
    FrameReader reader(FrameReader::kFromMember);
    std::vector<std::byte> again;
    std::size_t count = 0;
    for (std::size_t at = 0; at < stream.size(); at += piece) {
      reader.feed(std::span(stream).subspan(at, std::min(piece, stream.size() - at)));
      while (const auto message = reader.next()) {
        EXPECT_EQ(message->index(), count++);
        const auto bytes = encode(*message);
        again.insert(again.end(), bytes.begin(), bytes.end());
      }
    }
    ASSERT_FALSE(reader.broken());
    ASSERT_EQ(again, stream) << piece;
  }
}

TEST(ControlMessage, AnIntroductionIsAsDocumented) {
  const Member member{.rank = 1,
                      .host_id = "b1f0/4026531840",
                      .address = "10.0.0.2",
                      .port = 40001,
                      .local_name = "tutti-a7",
                      .pid = 4711,
                      .started = 8154,
                      .pid_space = 4026531836,
                      .processors = "\x0f",
                      .obstacles = "verbs: no device\n",
                      .sees_gpus = false};
  EXPECT_EQ(in_hex(encode(Introduction{member, 2, 600'000, 5'000, "auto", 1})), documented("introduction"));
}

TEST(ControlMessage, MembersAreReadBack) {
  FrameReader reader(FrameReader::kFromMember);
  const auto bytes = encode(Introduction{member_of(5), 8, 1234, 567, "tcp", 3});
  reader.feed(bytes);
  const auto message = reader.next();
  ASSERT_TRUE(message && std::holds_alternative<Introduction>(*message));
  const auto& introduction = std::get<Introduction>(*message);
  EXPECT_EQ(introduction.size, 8);
  EXPECT_EQ(introduction.timeout_ms, 1234);
  EXPECT_EQ(introduction.heartbeat_timeout_ms, 567);
  EXPECT_EQ(introduction.transport, "tcp");
  EXPECT_EQ(introduction.attempt, 3);
  EXPECT_EQ(introduction.member.rank, 5);
  EXPECT_EQ(introduction.member.host_id, "boot/1");
  EXPECT_EQ(introduction.member.address, "10.0.0.5");
  EXPECT_EQ(introduction.member.port, 4711);
  EXPECT_EQ(introduction.member.local_name, "tutti-x");
  EXPECT_EQ(introduction.member.pid, 1005);
  EXPECT_EQ(introduction.member.processors, std::string("\x03\0\x01", 3));
}

TEST(ControlMessage, AFrameThatIsTooLongIsRefusedBeforeItIsHere) {
  FrameReader reader(100);
  const std::byte length[] = {std::byte{101}, std::byte{0}, std::byte{0}, std::byte{0}};
  reader.feed(length);
  EXPECT_FALSE(reader.next());
  EXPECT_TRUE(reader.broken());
}

TEST(ControlMessage, ShortenedAndLengthenedFramesAreRefused) {
  for (const auto& message : one_of_each()) {
    for (const int change : {-1, 1}) {
      auto bytes = encode(message);
      if (change < 0 && bytes.size() == 5) continue;  // without its kind it is an empty frame: below
      bytes.resize(bytes.size() + static_cast<std::size_t>(change));
      const auto length = static_cast<std::uint32_t>(bytes.size() - 4);
      for (int i = 0; i < 4; ++i) bytes[static_cast<std::size_t>(i)] = static_cast<std::byte>(length >> (8 * i));
      FrameReader reader(FrameReader::kFromMember);
      reader.feed(bytes);
      EXPECT_FALSE(reader.next());
      EXPECT_TRUE(reader.broken()) << message.index() << " " << change;
    }
  }
  FrameReader empty(FrameReader::kFromMember);
  empty.feed(std::vector<std::byte>(4));
  EXPECT_FALSE(empty.next());
  EXPECT_TRUE(empty.broken());
}

TEST(ControlMessage, AVoteOfTheLargestJobFits) {
  Vote vote;
  vote.ranks.resize(65536);
  FrameReader reader(FrameReader::kFromMember);
  reader.feed(encode(vote));
  EXPECT_TRUE(reader.next());
}

TEST(ControlMessage, DamagedBytesNeverDoWorseThanBreakTheStream) {
  std::mt19937 random(4);
  const auto messages = one_of_each();
  for (int round = 0; round < 20'000; ++round) {
    auto bytes = encode(messages[random() % messages.size()]);
    for (unsigned i = 0; i <= random() % 4; ++i) bytes[random() % bytes.size()] = static_cast<std::byte>(random());
    FrameReader reader(FrameReader::kFromMember);
    reader.feed(bytes);
    for (int i = 0; i < 100 && reader.next(); ++i) {
    }
  }
}

}  // namespace
}  // namespace tutti::internal
