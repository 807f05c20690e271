#include "transport/faulty.h"

#include <gtest/gtest.h>

#include <string>

#include "transport/inproc/transport.h"

namespace tutti::internal {
namespace {

const Tag kTag{{4, 5}};

// Rank 0 behind a faulty transport, rank 1 plain.
struct TwoRanks {
  explicit TwoRanks(const Faults& faults) : faulty(inner[0], faults) {}
  Sleeper sleepers[2];
  std::shared_ptr<inproc::Hub> hub = std::make_shared<inproc::Hub>();
  inproc::Transport inner[2] = {{hub, sleepers[0]}, {hub, sleepers[1]}};
  FaultyTransport faulty;
  std::unique_ptr<Channel> first = faulty.channel(1, 0, 1), second = inner[1].channel(1, 1, 0);
};

// What a fixed sequence of calls saw, as text.
std::string story(const Faults& faults) {
  TwoRanks ranks(faults);
  std::string told;
  const std::byte out[50]{};
  for (std::uint64_t message = 0; message < 20; ++message) {
    ranks.second->send(kTag, out, 50);
    std::size_t seen = 0;
    while (seen < 50) {
      std::span<const std::byte> here;
      const bool shown = ranks.first->view(kTag, 50, here);
      told += shown ? std::to_string(here.size()) + " " : "- ";
      if (!shown) continue;
      seen += here.size();
      ranks.first->release(here.size());
    }
  }
  return told;
}

TEST(Faulty, WithoutFaultsItChangesNothing) {
  std::string expected;
  for (int i = 0; i < 20; ++i) expected += "50 ";
  EXPECT_EQ(story({}), expected);
}

TEST(Faulty, TheSameSeedTellsTheSameStoryAnotherSeedAnother) {
  Faults faults{.seed = 1, .delay_calls = 4, .short_view_percent = 50};
  const std::string told = story(faults);
  EXPECT_NE(told.find('-'), std::string::npos) << "something was delayed";
  EXPECT_EQ(story(faults), told);
  faults.seed = 2;
  EXPECT_NE(story(faults), told);
}

TEST(Faulty, NothingIsHiddenFromWhoeverIsAboutToSleep) {
  TwoRanks ranks({.delay_calls = 1'000'000});
  const std::byte out{};
  std::byte in;
  ranks.first->receive(0, kTag, &in, 1);
  ranks.second->send(kTag, &out, 1);
  EXPECT_EQ(ranks.first->received(), 0u);
  ranks.faulty.before_sleep();
  EXPECT_EQ(ranks.first->received(), 1u);
  ranks.faulty.after_sleep();
}

TEST(Faulty, TheChannelClosesAtTheMessageAskedFor) {
  TwoRanks ranks({.close_at = 2});
  const std::byte out{};
  std::byte in[3];
  for (std::uint64_t message = 0; message < std::size(in); ++message)
    ranks.second->receive(message, kTag, &in[message], 1);
  ranks.first->send(kTag, &out, 1);
  ranks.first->send(kTag, &out, 1);
  EXPECT_EQ(ranks.second->received(), 2u);
  EXPECT_THROW(ranks.first->send(kTag, &out, 1), ChannelClosed);
  EXPECT_THROW(ranks.first->progress(), ChannelClosed);
  EXPECT_THROW(ranks.second->received(), ChannelClosed);
}

TEST(Faulty, OneTagIsFlipped) {
  TwoRanks ranks({.flip_tag_at = 1});
  const std::byte out{};
  std::byte in[2];
  for (std::uint64_t message = 0; message < std::size(in); ++message)
    ranks.second->receive(message, kTag, &in[message], 1);
  ranks.first->send(kTag, &out, 1);
  EXPECT_EQ(ranks.second->received(), 1u);
  EXPECT_EQ(ranks.first->reserve(kTag, 1), nullptr) << "this message must go by send()";
  ranks.first->send(kTag, &out, 1);
  EXPECT_THROW(ranks.second->received(), TagMismatch);
}

TEST(Faulty, ReservationsAreRefusedNowAndThen) {
  TwoRanks ranks({.refuse_reserve_percent = 50});
  int refused = 0;
  for (std::uint64_t message = 0; message < 100; ++message) {
    std::byte in;
    ranks.second->receive(message, kTag, &in, 1);
    while (!ranks.first->reserve(kTag, 1)) ++refused;
    ranks.first->commit(kTag);
    EXPECT_EQ(ranks.second->received(), message + 1);
  }
  EXPECT_GT(refused, 20);
}

}  // namespace
}  // namespace tutti::internal
