// What inproc does that other transports need not: nothing is ever copied but into a posted receive.
#include <gtest/gtest.h>

#include <cstring>

#include "transport/inproc/transport.h"

namespace tutti::internal {
namespace {

struct TwoRanks {
  Sleeper sleepers[2];
  std::shared_ptr<inproc::Hub> hub = std::make_shared<inproc::Hub>();
  inproc::Transport transports[2] = {{hub, sleepers[0]}, {hub, sleepers[1]}};
  std::unique_ptr<Channel> first = transports[0].channel(1, 0, 1), second = transports[1].channel(1, 1, 0);
};

const Tag kTag{{1, 2}};

TEST(Inproc, AViewIsTheSendersOwnMemory) {
  TwoRanks ranks;
  std::byte out[100];
  ranks.first->send(kTag, out, sizeof out);
  std::span<const std::byte> here;
  ASSERT_TRUE(ranks.second->view(kTag, sizeof out, here));
  EXPECT_EQ(here.data(), out);
  EXPECT_EQ(here.size(), sizeof out);
  ranks.second->release(60);
  ASSERT_TRUE(ranks.second->view(kTag, sizeof out, here));
  EXPECT_EQ(here.data(), out + 60);
  EXPECT_EQ(ranks.first->sent(), 0u) << "all of it is lent until all of it is released";
  ranks.second->release(40);
  EXPECT_EQ(ranks.first->sent(), 1u);
}

TEST(Inproc, AReservationIsThePostedMemory) {
  TwoRanks ranks;
  std::byte in[8]{};
  EXPECT_EQ(ranks.first->reserve(kTag, 8), nullptr) << "nothing posted";
  ranks.second->receive(0, kTag, in, 8);
  EXPECT_EQ(ranks.first->reserve(kTag, 9), nullptr);
  EXPECT_EQ(ranks.first->reserve(kTag, 8), in);
  ranks.first->commit(kTag);
  EXPECT_EQ(ranks.second->received(), 1u);
}

TEST(Inproc, ALentMessageIsNotOvertakenByAReservation) {
  TwoRanks ranks;
  const std::byte out[8]{};
  std::byte in[2][8]{};
  for (std::uint64_t message : {0, 1}) ranks.second->receive(message, kTag, in[message], 8);
  ranks.first->send(kTag, out, 8);
  EXPECT_EQ(ranks.first->reserve(kTag, 8), nullptr);
  EXPECT_EQ(ranks.second->received(), 1u);
  EXPECT_EQ(ranks.first->reserve(kTag, 8), in[1]);
  ranks.first->commit(kTag);
}

TEST(Inproc, NothingIsSentBeforeSomeoneWantsIt) {
  TwoRanks ranks;
  const std::byte out{};
  ranks.first->send(kTag, &out, 1);
  ranks.second->progress();
  EXPECT_EQ(ranks.first->sent(), 0u);
}

}  // namespace
}  // namespace tutti::internal
