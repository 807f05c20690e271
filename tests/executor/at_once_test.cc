#include "executor/at_once.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "executor/idle_channel.h"

namespace tutti::internal {
namespace {

// A channel that counts what goes at once, while it says that there is room. The peer's message comes when a test says
// so; until then something else may be there, which cannot be taken at once.
struct Counting final : IdleChannel {
  bool has_room = true, has_come = false;
  int sent_so = 0, shown_so = 0, taken_so = 0;
  std::vector<float> message;  // empty: it has not come

  std::optional<std::size_t> most_at_once() const override { return 1 << 20; }
  bool prepare_at_once(const std::byte*, std::size_t, Copier) override { return has_room; }
  void send_at_once(const Tag&, const std::byte*, std::size_t) override { ++sent_so; }

  bool unclaimed(Tag&) override { return has_come; }
  const std::byte* look_at_once(const Tag&, std::size_t bytes) override {
    if (message.empty()) return nullptr;
    EXPECT_EQ(bytes, message.size() * sizeof(float));
    ++shown_so;
    return reinterpret_cast<const std::byte*>(message.data());
  }
  void take_at_once(std::byte* to, bool) override {
    ++taken_so;
    if (to != nullptr)
      std::copy_n(reinterpret_cast<const std::byte*>(message.data()), message.size() * sizeof(float), to);
  }
};

// Rank 0 of 4 ranks, and what its calls send to the three others.
struct AtOnceSends : testing::TestWithParam<Collective> {
  static constexpr std::size_t kCount = 1000;
  std::unique_ptr<Plan> plan =
      make_plan(Call{.collective = GetParam(), .dtype = DType::float32, .op = Op::sum, .count = kCount},
                *find_algorithm(GetParam(), Algorithm::one_shot), 0, Layout::of(4));
  std::array<PeerLink, 4> links;
  std::array<Counting*, 4> channels{};
  Workspace workspace;
  std::vector<float> input = std::vector<float>(4 * kCount, 1), output = std::vector<float>(4 * kCount, 2);

  AtOnceSends() {
    for (std::size_t peer = 1; peer < links.size(); ++peer) {
      auto channel = std::make_unique<Counting>();
      channels[peer] = channel.get();
      links[peer].channel = std::move(channel);
    }
    workspace.fit(*plan, [](std::size_t bytes) { return std::make_shared<SymmetricMemory>(nullptr, bytes); });
  }
  bool sends() {
    at_once = AtOnce(*plan, links, workspace);
    EXPECT_TRUE(at_once);
    return at_once && at_once.send(plan->tag, reinterpret_cast<const std::byte*>(input.data()),
                                   reinterpret_cast<std::byte*>(output.data()));
  }
  AtOnce at_once;
};

TEST_P(AtOnceSends, OneMessageToEachPeer) {
  EXPECT_TRUE(sends());
  for (std::size_t peer = 1; peer < links.size(); ++peer) EXPECT_EQ(channels[peer]->sent_so, 1);
}

TEST_P(AtOnceSends, NothingIfAnyPeerHasNoRoom) {
  for (std::size_t full = 1; full < links.size(); ++full) {
    for (std::size_t peer = 1; peer < links.size(); ++peer) channels[peer]->has_room = peer != full;
    EXPECT_FALSE(sends());
    for (std::size_t peer = 1; peer < links.size(); ++peer) EXPECT_EQ(channels[peer]->sent_so, 0);
    EXPECT_TRUE(std::ranges::all_of(output, [](float value) { return value == 2; })) << "and nothing is copied";
  }
}

// So the caller does not look for it any longer.
TEST_P(AtOnceSends, AMessageThatCannotBeTakenIsKnownFromOneThatHasNotCome) {
  EXPECT_TRUE(sends());
  if (GetParam() == Collective::scatter) return;  // nothing comes to the root
  EXPECT_EQ(at_once.look(plan->tag), AtOnce::Arrival::awaited);
  for (std::size_t peer = 1; peer < links.size(); ++peer) channels[peer]->has_come = true;
  EXPECT_EQ(at_once.look(plan->tag), AtOnce::Arrival::never);
}

TEST_P(AtOnceSends, EachMessageIsShownOnceAndTakenOnce) {
  if (GetParam() == Collective::scatter) return;                // nothing comes to the root
  for (std::size_t first = 1; first < links.size(); ++first) {  // who comes before the others
    ASSERT_TRUE(sends());
    for (std::size_t peer = 1; peer < links.size(); ++peer) *channels[peer] = Counting();
    const auto come = [&](std::size_t peer) { channels[peer]->message.assign(kCount, static_cast<float>(peer)); };
    come(first);
    EXPECT_EQ(at_once.look(plan->tag), AtOnce::Arrival::awaited);
    for (std::size_t peer = 1; peer < links.size(); ++peer) come(peer);
    EXPECT_EQ(at_once.look(plan->tag), AtOnce::Arrival::whole);
    EXPECT_EQ(at_once.look(plan->tag), AtOnce::Arrival::whole);
    at_once.finish();
    for (std::size_t peer = 1; peer < links.size(); ++peer) {
      EXPECT_EQ(channels[peer]->shown_so, 1);
      EXPECT_EQ(channels[peer]->taken_so, 1);
      EXPECT_EQ(links[peer].sent, first);  // one in each call
      EXPECT_EQ(links[peer].taken, first);
    }
    for (std::size_t i = 0; i < kCount; ++i) {
      if (GetParam() == Collective::all_reduce) {
        ASSERT_EQ(output[i], 1 + 1 + 2 + 3);
      } else {
        for (std::size_t row = 0; row < links.size(); ++row)
          ASSERT_EQ(output[row * kCount + i], row == 0 ? 1 : static_cast<float>(row));
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Collectives, AtOnceSends,
                         testing::Values(Collective::all_gather, Collective::all_to_all, Collective::scatter,
                                         Collective::all_reduce));

}  // namespace
}  // namespace tutti::internal
