#include "net/handshake.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <random>

#include "documented.h"

namespace tutti::internal {
namespace {

using Purpose = Handshake::Purpose;
using Failure = Handshake::Failure;
using Bytes = std::vector<std::byte>;

Digest nonce(int seed) {
  Digest digest;
  digest.fill(static_cast<std::byte>(seed));
  return digest;
}

Handshake::AcceptPolicy policy_of(int rank, const std::string& key = "secret") {
  return {rank, 8, key, key, rank == 0, true};
}

Handshake connecting(int from, int to, Purpose purpose = Purpose::data, std::string key = "secret") {
  return Handshake::connecting({purpose, from, to, 77}, std::move(key), nonce(1));
}

// Gives everything that `from` says to `to`, `piece` bytes at a time. Returns whether anything was said.
bool carry(Handshake& from, Handshake& to, std::size_t piece) {
  const Bytes said = from.take_output();
  for (std::size_t at = 0; at < said.size();) {
    const std::size_t bytes = std::min({piece, said.size() - at, to.wanted()});
    if (bytes == 0) break;
    to.feed(std::span(said).subspan(at, bytes));
    at += bytes;
  }
  return !said.empty();
}

void talk(Handshake& a, Handshake& b, std::size_t piece = 1000) {
  for (bool moved = true; moved;) {
    moved = carry(a, b, piece);
    moved |= carry(b, a, piece);
  }
}

TEST(Handshake, BothEndsAgreeHoweverTheBytesAreSplit) {
  for (std::size_t piece = 1; piece <= 60; ++piece) {
    auto a = connecting(3, 2);
    auto b = Handshake::accepting(policy_of(2), nonce(2));
    talk(a, b, piece);
    ASSERT_TRUE(a.done() && b.done()) << piece << a.reason() << b.reason();
    EXPECT_EQ(b.opening().from, 3);
    EXPECT_EQ(b.opening().communicator, 77u);
    EXPECT_EQ(b.opening().purpose, Purpose::data);
  }
}

TEST(Handshake, LaunchersAreTakenOnlyWhereTheyAreWanted) {
  for (const bool wanted : {true, false}) {
    auto policy = policy_of(0);
    policy.takes_control = policy.takes_data = !wanted;
    policy.takes_launchers = wanted;
    for (const Purpose purpose : {Purpose::launcher, Purpose::control}) {
      auto a = connecting(1, 0, purpose);
      auto b = Handshake::accepting(policy, nonce(2));
      talk(a, b);
      EXPECT_EQ(a.done() && b.done(), wanted == (purpose == Purpose::launcher));
      EXPECT_EQ(a.failure(), a.done() ? Failure::none : Failure::not_wanted) << a.reason();
    }
  }
}

TEST(Handshake, NeverAsksForBytesThatFollowIt) {
  auto a = connecting(3, 2);
  auto b = Handshake::accepting(policy_of(2), nonce(2));
  std::size_t to_a = 0, to_b = 0;
  for (bool more = true; more;) {
    const Bytes x = a.take_output(), y = b.take_output();
    more = !x.empty() || !y.empty();
    EXPECT_LE(x.size(), b.wanted());
    EXPECT_LE(y.size(), a.wanted());
    b.feed(x);
    a.feed(y);
    to_a += y.size();
    to_b += x.size();
  }
  EXPECT_TRUE(a.done() && b.done());
  EXPECT_EQ(to_b, 56u + 32u);
  EXPECT_EQ(to_a, 56u + 36u);
  EXPECT_EQ(a.wanted() + b.wanted(), 0u);
}

TEST(Handshake, ItsMessagesAreAsDocumented) {
  auto rank1 = Handshake::connecting({Purpose::control, 1, 0, 0}, "secret", nonce(1));
  auto rank0 = Handshake::accepting(policy_of(0), nonce(2));
  for (const char* name : {"hello", "proof"}) {
    const Bytes said = rank1.take_output();
    EXPECT_EQ(in_hex(said), documented(name));
    rank0.feed(said);
    const Bytes answer = rank0.take_output();
    EXPECT_EQ(in_hex(answer), documented(rank0.done() ? "verdict" : "challenge"));
    rank1.feed(answer);
  }
  EXPECT_TRUE(rank0.done() && rank1.done());
}

TEST(Handshake, AHelloNamesPurposeRanksAndCommunicator) {
  const Bytes hello =
      Handshake::connecting({Purpose::data, 0x01020304, 5, 0x1122334455667788}, "", nonce(1)).take_output();
  EXPECT_EQ(in_hex(std::span(hello).subspan(6, 18)), "02 00 04 03 02 01 05 00 00 00 88 77 66 55 44 33 22 11 ");
}

TEST(Handshake, AWrongSecretIsRefusedOnBothEnds) {
  auto a = connecting(3, 2, Purpose::data, "guess");
  auto b = Handshake::accepting(policy_of(2), nonce(2));
  talk(a, b);
  EXPECT_EQ(a.failure(), Failure::wrong_secret);
  EXPECT_EQ(b.failure(), Failure::wrong_secret);
  EXPECT_NE(b.reason().find("rank 3"), std::string::npos);
}

TEST(Handshake, EmptySecretsAreEqualToEachOtherOnly) {
  auto a = connecting(3, 2, Purpose::data, "");
  auto b = Handshake::accepting(policy_of(2, ""), nonce(2));
  talk(a, b);
  EXPECT_TRUE(a.done() && b.done());
  auto c = connecting(3, 2, Purpose::data, "");
  auto d = Handshake::accepting(policy_of(2, "secret"), nonce(2));
  talk(c, d);
  EXPECT_TRUE(c.failed() && d.failed());
}

TEST(Handshake, ControlAndDataHaveKeysOfTheirOwn) {
  Handshake::AcceptPolicy policy = policy_of(0);
  policy.control_key = "other";
  auto a = connecting(3, 0, Purpose::control);
  auto b = Handshake::accepting(policy, nonce(2));
  talk(a, b);
  EXPECT_EQ(b.failure(), Failure::wrong_secret);
}

TEST(Handshake, AnAcceptorThatOnlyPretendsIsFoundOut) {
  // It accepts whatever proof it gets, without the secret.
  auto a = connecting(3, 2);
  auto b = Handshake::accepting(policy_of(2, "not it"), nonce(2));
  carry(a, b, 100);
  carry(b, a, 100);
  Bytes verdict(36);
  a.feed(verdict);
  EXPECT_EQ(a.failure(), Failure::wrong_secret);
}

TEST(Handshake, AReflectionIsRefused) {
  auto a = connecting(3, 2);
  const Bytes hello = a.take_output();
  a.feed(hello);
  EXPECT_TRUE(a.failed());

  // A challenge with the right ranks, but our own nonce; then our own proof as the verdict's.
  Bytes challenge = hello;
  std::swap_ranges(challenge.begin() + 8, challenge.begin() + 12, challenge.begin() + 12);
  auto b = connecting(3, 2);
  b.feed(challenge);
  EXPECT_EQ(b.failure(), Failure::wrong_secret);

  auto c = connecting(3, 2);
  challenge[30] ^= std::byte{1};
  c.feed(challenge);
  c.take_output();
  auto d = connecting(3, 2);
  d.take_output();
  d.feed(challenge);
  const Bytes proof = d.take_output();
  Bytes verdict(4);
  verdict.insert(verdict.end(), proof.begin(), proof.end());
  ASSERT_EQ(verdict.size(), 36u);
  c.feed(verdict);
  EXPECT_EQ(c.failure(), Failure::wrong_secret);
}

TEST(Handshake, AReplayedProofIsRefused) {
  auto a = connecting(3, 2);
  auto b = Handshake::accepting(policy_of(2), nonce(2));
  Bytes recorded = a.take_output();
  b.feed(recorded);
  carry(b, a, 100);
  const Bytes proof = a.take_output();
  auto later = Handshake::accepting(policy_of(2), nonce(9));
  later.feed(recorded);
  later.feed(proof);
  EXPECT_EQ(later.failure(), Failure::wrong_secret);
}

TEST(Handshake, EveryBitThatIsChangedOnTheWayIsNoticed) {
  for (int direction = 0; direction < 2; ++direction)
    for (std::size_t bit = 0; bit < 92 * 8; ++bit) {
      auto a = connecting(3, 2);
      auto b = Handshake::accepting(policy_of(2), nonce(2));
      std::size_t at[2] = {0, 0};
      for (bool more = true; more;) {
        more = false;
        for (int from = 0; from < 2; ++from) {
          Handshake& speaker = from == 0 ? a : b;
          Handshake& listener = from == 0 ? b : a;
          Bytes said = speaker.take_output();
          const std::size_t place = bit / 8;
          if (from == direction && place >= at[from] && place < at[from] + said.size())
            said[place - at[from]] ^= static_cast<std::byte>(1 << (bit % 8));
          at[from] += said.size();
          more = more || !said.empty();
          if (!said.empty()) listener.feed(std::span(said).first(std::min(said.size(), listener.wanted())));
        }
      }
      if (bit / 8 >= at[direction]) continue;  // this direction says less
      ASSERT_FALSE(a.done() && b.done()) << "direction " << direction << " bit " << bit;
      ASSERT_FALSE(direction == 0 && b.done()) << bit;
      ASSERT_FALSE(direction == 1 && a.done()) << bit;
    }
}

TEST(Handshake, AnotherVersionIsNamedOnBothEnds) {
  auto a = connecting(3, 2);
  Bytes hello = a.take_output();
  hello[4] = std::byte{Handshake::kVersion + 1};
  auto b = Handshake::accepting(policy_of(2), nonce(2));
  b.feed(hello);
  EXPECT_EQ(b.failure(), Failure::version);
  EXPECT_NE(b.reason().find("version " + std::to_string(Handshake::kVersion + 1)), std::string::npos);
  Bytes challenge = b.take_output();
  ASSERT_EQ(challenge.size(), 56u);
  challenge[4] = std::byte{Handshake::kVersion + 1};
  a.feed(challenge);
  EXPECT_EQ(a.failure(), Failure::version);
}

TEST(Handshake, ConnectionsThatAreNotWantedAreRefused) {
  struct Case {
    Handshake::Opening opening;
    int acceptor;
    Failure failure;
  };
  for (const Case& c : {Case{{Purpose::data, 2, 3, 0}, 3, Failure::not_wanted},  // only higher ranks connect
                        Case{{Purpose::data, 3, 3, 0}, 3, Failure::not_wanted},  // nobody to itself
                        Case{{Purpose::data, 8, 3, 0}, 3, Failure::not_wanted},  // no such rank
                        Case{{Purpose::data, -1, 3, 0}, 3, Failure::not_wanted},
                        Case{{Purpose::control, 3, 2, 0}, 2, Failure::not_wanted},  // not the hub
                        Case{{Purpose::data, 5, 2, 0}, 3, Failure::wrong_rank}}) {  // meant for another
    auto a = Handshake::connecting(c.opening, "secret", nonce(1));
    auto b = Handshake::accepting(policy_of(c.acceptor), nonce(2));
    talk(a, b);
    EXPECT_TRUE(a.failed());
    EXPECT_FALSE(b.done());
    if (c.failure == Failure::not_wanted) {
      EXPECT_EQ(b.failure(), c.failure);
    } else {
      EXPECT_EQ(a.failure(), c.failure);  // it does not even go on to prove itself
    }
  }
}

TEST(Handshake, SomethingElseIsDroppedAtTheFirstWrongByte) {
  for (const char* text : {"G", "\x16\x03\x01", "SSH-2.0-OpenSSH", "TUTTI", ""}) {
    auto b = Handshake::accepting(policy_of(2), nonce(2));
    b.feed(std::as_bytes(std::span(text, std::strlen(text))));
    EXPECT_EQ(b.failed(), *text != 0) << text;
    EXPECT_EQ(b.failure(), *text ? Failure::not_tutti : Failure::none);
    EXPECT_EQ(b.heard(), *text != 0);
    EXPECT_TRUE(b.take_output().empty());
  }
  auto b = Handshake::accepting(policy_of(2), nonce(2));
  b.feed(std::as_bytes(std::span("GET / HTTP/1.1\r\n", 16)));
  EXPECT_NE(b.reason().find("GET / HTTP/1.1.."), std::string::npos) << b.reason();
}

TEST(Handshake, RandomBytesNeverSucceedAndNeverAskForMore) {
  std::mt19937 random(3);
  for (int round = 0; round < 2000; ++round) {
    auto b = round % 2 ? Handshake::accepting(policy_of(2), nonce(2)) : connecting(3, 2);
    Bytes right = connecting(3, 2).take_output();
    std::size_t fed = 0;
    while (b.wanted() > 0 && fed < 1000) {
      Bytes noise(1 + random() % b.wanted());
      for (std::byte& x : noise) x = static_cast<std::byte>(random());
      // Get past the magic now and then, so that what comes after is reached too.
      for (std::size_t i = 0; i < noise.size() && fed + i < 8 && round % 4 != 0; ++i) noise[i] = right[fed + i];
      b.feed(noise);
      fed += noise.size();
    }
    ASSERT_TRUE(b.failed());
    ASSERT_LE(fed, 56u + 36u);
  }
}

}  // namespace
}  // namespace tutti::internal
