// How the two ends of a verbs channel are joined, how they end, and what is left then.
#include <gmock/gmock.h>

#include <functional>

#include "transport/verbs/greeting.h"
#include "transport/verbs_ends.h"
#include "tutti/error.h"

namespace tutti::internal {
namespace {

using testing::HasSubstr;
using verbs::Greeting;
using verbs::kBlockBytes;
using verbs::kGranule;
using verbs::kRingBytes;

constexpr std::size_t kMessage = 1 << 20;

void write_to(int socket, std::span<const std::byte> bytes) {
  ASSERT_EQ(::write(socket, bytes.data(), bytes.size()), static_cast<ssize_t>(bytes.size()));
}

// --- joining ---------------------------------------------------------------------------------------------------------

TEST(VerbsChannel, HoldsAQueuePairWhileItIsJoined) {
  VerbsEnds ends;
  EXPECT_EQ(ends.transport(0).queue_pairs(), 0u);
  ends.join();
  EXPECT_EQ(ends.transport(0).queue_pairs(), 1u);
  EXPECT_EQ(ends.transport(1).queue_pairs(), 1u);
  ends.leave(0);
  EXPECT_EQ(ends.transport(0).queue_pairs(), 0u);
}

TEST(VerbsChannel, BothEndsSayWhyOneCannotRegister) {
  for (const int poor : {0, 1}) {
    FakeLimits limits[2];
    limits[poor].most_registered = kBlockBytes - 1;
    VerbsEnds ends(limits[0], limits[1]);
    ends.join();
    EXPECT_NO_THROW(ends[0].progress()) << "nobody waits for anything";
    Bytes in[2] = {Bytes(8), Bytes(8)};
    for (const int side : {0, 1}) ends.receive(side, 0, in[side]);
    EXPECT_EQ(ends.complaint(poor), "no more memory may be registered here");
    EXPECT_EQ(ends.complaint(1 - poor), "the peer cannot use verbs: no more memory may be registered here");
    EXPECT_EQ(ends.transport(poor).queue_pairs(), 0u);
  }
}

TEST(VerbsChannel, WhoeverSendsIsToldToo) {
  VerbsEnds ends({}, {.most_registered = 0});
  ends.join();
  const Bytes out(8);
  ends.send(0, 0, out);
  EXPECT_THAT(ends.complaint(0), HasSubstr("the peer cannot use verbs"));
  EXPECT_EQ(ends.complaint(1), "") << "it waits for nothing";
}

TEST(VerbsChannel, SomethingElseThanAGreetingIsRefused) {
  auto other_ring = Greeting{}.encode();
  other_ring[6] ^= std::byte{1};
  for (const Bytes& bytes : {pattern(0, 4000), Bytes(other_ring.begin(), other_ring.end())}) {
    VerbsEnds ends;
    ends.attach(0);
    write_to(ends.socket(1), bytes);
    Bytes in(8);
    ends.receive(0, 0, in);
    EXPECT_EQ(ends.complaint(0), "the peer does not speak this version of verbs");
  }
}

TEST(VerbsChannel, AConnectionThatEndsBeforeTheGreetingIsNone) {
  const auto greeting = Greeting{}.encode();
  for (const std::size_t heard : {std::size_t{0}, std::size_t{100}, Greeting::kBytes - 1, Greeting::kBytes}) {
    VerbsEnds ends;
    ends.attach(0);
    Bytes in(8);
    ends.receive(0, 0, in);
    write_to(ends.socket(1), std::span(greeting).first(heard));
    EXPECT_EQ(ends.complaint(0), "") << "the rest may come";
    std::byte theirs[2 * Greeting::kBytes];  // a socket that closes on something unread says so
    EXPECT_GE(::read(ends.socket(1), theirs, sizeof theirs), static_cast<ssize_t>(Greeting::kBytes));
    ends.hang_up(1);
    EXPECT_EQ(ends.complaint(0), "the peer closed the connection") << heard;
  }
}

TEST(VerbsChannel, AConnectionThatCannotBeMadeIsAnErrorForWhoeverWaits) {
  VerbsEnds ends;
  ends.transport(0).fail(VerbsEnds::kCommunicator, 1, "connection refused");
  EXPECT_NO_THROW(ends[0].progress());
  Bytes in(8);
  ends.receive(0, 0, in);
  EXPECT_EQ(ends.complaint(0), "connection refused");
}

// --- ending ----------------------------------------------------------------------------------------------------------

TEST(VerbsChannel, WhatHasArrivedIsDeliveredEvenAfterFailure) {
  constexpr std::uint64_t kCount = 100;  // more than are taken in at once
  VerbsEnds ends;
  ends.join();
  std::vector<Bytes> out, in(kCount + 1, Bytes(64));
  for (std::uint64_t i = 0; i < kCount; ++i) out.push_back(pattern(i, 64));
  for (std::uint64_t i = 0; i < kCount; ++i) ends.send(1, i, out[i]);
  for (std::uint64_t i = 0; i < 10 * kCount; ++i) ends[1].progress();  // carries its writes out
  ends.transport(0).fail(VerbsEnds::kCommunicator, 1, "its process died");
  for (std::uint64_t i = 0; i < kCount; ++i) ends.receive(0, i, in[i]);
  ends.wait([&] { return ends[0].received() == kCount; });
  for (std::uint64_t i = 0; i < kCount; ++i) EXPECT_TRUE(same(in[i], out[i])) << i;
  ends.receive(0, kCount, in[kCount]);
  EXPECT_EQ(ends.complaint(0), "its process died");
}

// A device that lets a test act once its polls have found nothing `quiet` times.
class Interrupted final : public verbs::Fabric {
 public:
  Interrupted(std::shared_ptr<verbs::Fabric> inner, unsigned quiet, std::function<void()> act)
      : inner_(std::move(inner)), quiet_(quiet), act_(std::move(act)) {}

  std::unique_ptr<verbs::QueuePair> queue_pair(const Sizes& sizes) override {
    return std::make_unique<Pair>(*this, inner_->queue_pair(sizes));
  }
  std::unique_ptr<verbs::Registration> register_memory(std::byte* data, std::size_t bytes) override {
    return inner_->register_memory(data, bytes);
  }
  std::size_t most_in_a_write() const override { return inner_->most_in_a_write(); }
  int bell() const override { return inner_->bell(); }
  void hush() override { inner_->hush(); }
  std::string error_text() override { return inner_->error_text(); }

 private:
  class Pair final : public verbs::QueuePair {
   public:
    Pair(Interrupted& fabric, std::unique_ptr<verbs::QueuePair> inner) : fabric_(fabric), inner_(std::move(inner)) {}
    Address address() const override { return inner_->address(); }
    void connect(const Address& peer) override { inner_->connect(peer); }
    bool write(const Write& write) override { return inner_->write(write); }
    std::uint64_t written() const override { return inner_->written(); }
    std::size_t most_inline() const override { return inner_->most_inline(); }
    std::size_t poll(std::span<verbs::Event> events) override {
      const std::size_t count = inner_->poll(events);
      if (count == 0 && --fabric_.quiet_ == 0) fabric_.act_();
      return count;
    }
    const std::string& why() const override { return inner_->why(); }
    void arm() override { inner_->arm(); }
    void close() override { inner_->close(); }

   private:
    Interrupted& fabric_;
    const std::unique_ptr<verbs::QueuePair> inner_;
  };

  const std::shared_ptr<verbs::Fabric> inner_;
  unsigned quiet_;
  const std::function<void()> act_;
};

// The peer sends its last message and goes, after this end has looked for messages and before it looks for a hang-up,
// which it does every so many polls, a power of two.
TEST(VerbsChannel, ALastWordIsHeardHoweverCloselyTheEndFollowsIt) {
  for (unsigned quiet = 16; quiet <= 16384; quiet *= 2) {
    VerbsEnds ends;
    const Bytes out = pattern(0, 100);
    Bytes in(100);
    ends.use(0, std::make_shared<Interrupted>(ends.shared_fabric(0), quiet, [&] {
               ends.send(1, 0, out);
               ends.leave(1);
             }));
    ends.join();
    ends.receive(0, 0, in);
    ASSERT_NO_THROW(wait_until({&ends[0]}, [&] { return ends[0].received() == 1; })) << quiet;
    EXPECT_TRUE(same(in, out));
    ends.receive(0, 1, in);
    EXPECT_EQ(ends.complaint(0), "the peer closed the connection");
  }
}

TEST(VerbsChannel, WhoeverOnlySendsHearsOfACutToo) {
  VerbsEnds ends;
  ends.join();
  const Bytes out(8);
  const auto send = [&](std::uint64_t message) {
    ends.send(0, message, out);
    while (ends[0].sent() <= message) {
    }
  };
  send(0);
  cut(ends.network());
  std::uint64_t messages = 1;
  EXPECT_THROW(while (messages < 200) send(messages++), ChannelClosed);
  EXPECT_LT(messages, 60u);
}

// A device may lose a write without a word: then only its own word on its port tells.
TEST(VerbsChannel, ADevicesErrorIsToldToWhoeverWaitsWhileItLasts) {
  VerbsEnds ends;
  ends.join();
  set_error_text(ends.network(), "the link is down");
  EXPECT_EQ(ends.complaint(0), "") << "it waits for nothing";
  set_error_text(ends.network(), "");
  Bytes in(8);
  ends.receive(0, 0, in);
  EXPECT_EQ(ends.complaint(0), "") << "the link is back";
  set_error_text(ends.network(), "the link is down");
  EXPECT_EQ(ends.complaint(0), "the link is down");
}

TEST(VerbsChannel, ACutInALargeMessageIsToldToWhoeverWaitsAndLeavesNothingRegistered) {
  const FakeLimits limits{.most_in_a_write = 4096, .most_registered = kBlockBytes + kMessage};
  for (const bool registered : {false, true}) {
    VerbsEnds ends(limits);
    ends.join();
    const Bytes original = pattern(0, kMessage);
    Bytes out = original, in(kMessage);
    std::shared_ptr<void> tokens[2];
    if (registered) tokens[0] = ends.add(0, out), tokens[1] = ends.add(1, in);
    ends.receive(1, 0, in);
    ends.send(0, 0, out);
    ends.wait([&] { return in[0] == out[0] && in[5000] == out[5000]; });
    EXPECT_FALSE(same(in, out)) << "in the middle";
    cut(ends.network());
    EXPECT_EQ(ends.complaint(0), "the peer does not answer");
    ends.leave(0);
    EXPECT_FALSE(ends.complaint(1).empty());
    ends.leave(1);
    for (std::shared_ptr<void>& token : tokens) token.reset();
    for (const int side : {0, 1})
      EXPECT_NO_THROW(ends.fabric(side).register_memory(nullptr, limits.most_registered)) << side;
  }
}

TEST(VerbsChannel, AfterWithdrawingNothingOfThePeersReachesMemory) {
  for (const int turns : {0, 1, 5, 40}) {
    VerbsEnds ends({.most_in_a_write = 4096});
    ends.join();
    Bytes out = pattern(0, kMessage), in(kMessage);
    const auto out_token = ends.add(0, out), in_token = ends.add(1, in);
    ends.receive(1, 0, in);
    ends[1].flush();  // offered
    ends.send(0, 0, out);
    for (int turn = 0; turn < turns; ++turn) ends[0].progress(), ends[1].progress();
    EXPECT_TRUE(ends[1].withdraw());
    const Bytes before = in;
    EXPECT_FALSE(ends.complaint(0).empty());
    EXPECT_TRUE(same(in, before)) << turns;
    Tag tag;
    EXPECT_FALSE(ends[1].unclaimed(tag));
    EXPECT_TRUE(ends[1].withdraw()) << "again";
  }
}

TEST(VerbsChannel, MayWithdrawBeforeItIsJoined) {
  VerbsEnds ends;
  Bytes in(8);
  ends.receive(0, 0, in);
  EXPECT_TRUE(ends[0].withdraw());
  ends.attach(0);
  Tag tag;
  EXPECT_FALSE(ends[0].unclaimed(tag));
}

// --- loans -----------------------------------------------------------------------------------------------------------

// The fake device complains if it reads or writes what is no longer registered.
TEST(VerbsChannel, ATokenLetGoUnderWayDoesNotUnregisterWhatIsLent) {
  VerbsEnds ends({.most_in_a_write = 4096});
  ends.join();
  Bytes out = pattern(0, kMessage), in(kMessage);
  auto out_token = ends.add(0, out), in_token = ends.add(1, in);
  ends.receive(1, 0, in);
  ends.send(0, 0, out);
  for (int turn = 0; turn < 5; ++turn) ends[0].progress(), ends[1].progress();
  EXPECT_FALSE(same(in, out));
  out_token.reset();
  in_token.reset();
  ends.wait([&] { return ends[0].sent() == 1 && ends[1].received() == 1; });
  EXPECT_TRUE(same(in, out));
  EXPECT_EQ(ends.transport(0).registry().find(out.data(), 1), nullptr);
}

TEST(VerbsChannel, AReceiverThatDoesNotLookIsSentOneRingAndNoMore) {
  VerbsEnds ends;
  ends.join();
  constexpr std::uint64_t kFit = kRingBytes / kGranule, kCount = 3 * kFit;
  for (std::uint64_t i = 0; i < kCount; ++i) ends.send(0, i, {});
  for (std::uint64_t i = 0; i < 10 * kCount; ++i) ends[0].progress();
  EXPECT_EQ(ends[0].sent(), kFit);
  Bytes none;
  for (std::uint64_t i = 0; i < kCount; ++i) ends.receive(1, i, none);
  ends.wait([&] { return ends[0].sent() == kCount && ends[1].received() == kCount; });
}

}  // namespace
}  // namespace tutti::internal
