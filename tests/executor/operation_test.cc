#include "executor/operation.h"

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <memory>
#include <vector>

#include "executor/idle_channel.h"

namespace tutti::internal {
namespace {

// As a call of device memory whose input is still on its way.
TEST(Operation, ThatHasNotBegunWaitsForNobody) { EXPECT_EQ(Operation().waiting_for().rank, -1); }

// A channel of a peer that has read what is sent to it at once, and counts what is asked of it.
struct Reader final : IdleChannel {
  std::size_t asked_bytes = 0;
  std::vector<const std::byte*> lent;

  bool reads_from_far(std::size_t bytes) override {
    asked_bytes += bytes;
    return true;
  }
  void send(const Tag&, const std::byte* data, std::size_t, Copier) override { lent.push_back(data); }
  std::uint64_t sent() override { return lent.size(); }
};

// Of the root, to three others.
void broadcast(bool copies_once, std::array<PeerLink, 4>& links, std::vector<std::byte>& scratch,
               const std::vector<float>& values) {
  const auto count = static_cast<std::uint64_t>(values.size());
  const std::unique_ptr<Plan> plan =
      make_plan(Call{.collective = Collective::broadcast, .dtype = DType::float32, .op = Op::sum, .count = count},
                *find_algorithm(Collective::broadcast, Algorithm::one_shot), 0, Layout::of(4), 1, {},
                {.copies_once = copies_once});
  for (std::size_t peer = 1; peer < links.size(); ++peer) links[peer].channel = std::make_unique<Reader>();
  Workspace workspace;
  scratch.resize(plan->scratch_bytes);
  workspace.fit(*plan, [&](std::size_t bytes) {
    return std::make_shared<SymmetricMemory>(std::shared_ptr<std::byte>(scratch.data(), [](std::byte*) {}), bytes);
  });
  Operation operation;
  std::vector<float> output(values.size());
  operation.start(*plan, Tag{}, links, workspace, reinterpret_cast<const std::byte*>(values.data()),
                  reinterpret_cast<std::byte*>(output.data()));
  EXPECT_TRUE(operation.advance());
  EXPECT_EQ(output, values);
}

TEST(Operation, ThatCopiesOnceAsksHowFarTheReadersAre) {
  const std::vector<float> values(100'000, 3);
  std::array<PeerLink, 4> links;
  std::vector<std::byte> scratch;
  broadcast(true, links, scratch, values);
  for (std::size_t peer = 1; peer < links.size(); ++peer) {
    const Reader& reader = dynamic_cast<const Reader&>(*links[peer].channel);
    EXPECT_EQ(reader.asked_bytes, values.size() * sizeof(float));
    ASSERT_EQ(reader.lent.size(), 1u);
    EXPECT_EQ(reader.lent[0], scratch.data());
    EXPECT_EQ(std::memcmp(scratch.data(), values.data(), values.size() * sizeof(float)), 0);
  }
}

TEST(Operation, ThatSendsTheUsersMemoryDoesNotAsk) {
  std::array<PeerLink, 4> links;
  std::vector<std::byte> scratch;
  broadcast(false, links, scratch, std::vector<float>(100'000, 3));
  for (std::size_t peer = 1; peer < links.size(); ++peer)
    EXPECT_EQ(dynamic_cast<const Reader&>(*links[peer].channel).asked_bytes, 0u);
}

// The peer of a rank of two. It has sent its message, and reads this rank's when the test says so.
struct Exchanging final : IdleChannel {
  explicit Exchanging(std::vector<float>& own_output) : output(own_output) {}
  const std::vector<float> message = std::vector<float>(5000, 1);
  std::vector<float>& output;  // of this rank
  float output_when_sent = 0;
  int sends = 0;
  bool has_read = false;

  void send(const Tag&, const std::byte*, std::size_t, Copier) override {
    ++sends;
    output_when_sent = output.front();
  }
  std::uint64_t sent() override { return has_read ? 1 : 0; }
  std::uint64_t received() override { return 1; }
  bool view(const Tag&, std::size_t, std::span<const std::byte>& here) override {
    here = std::as_bytes(std::span(message));
    return true;
  }
};

// This rank's call, by one_shot.
struct Exchange {
  Exchange(Collective collective, bool in_place)
      : plan(make_plan(Call{.collective = collective, .dtype = DType::float32, .op = Op::sum, .count = 5000},
                       *find_algorithm(collective, Algorithm::one_shot), 0, Layout::of(2))),
        input(5000, 2),
        output(plan->output_bytes / sizeof(float), in_place ? 2 : 9) {
    auto made = std::make_unique<Exchanging>(output);
    peer = made.get();
    links[1].channel = std::move(made);
    workspace.fit(*plan, [&](std::size_t bytes) {
      scratch.resize(bytes);
      return std::make_shared<SymmetricMemory>(std::shared_ptr<std::byte>(scratch.data(), [](std::byte*) {}), bytes);
    });
    const auto* const from = in_place ? output.data() : input.data();
    operation.start(*plan, Tag{}, links, workspace, reinterpret_cast<const std::byte*>(from),
                    reinterpret_cast<std::byte*>(output.data()));
  }

  const std::unique_ptr<Plan> plan;
  std::vector<float> input, output;
  std::vector<std::byte> scratch;
  std::array<PeerLink, 2> links;
  Exchanging* peer = nullptr;
  Workspace workspace;
  Operation operation;
};

TEST(Operation, WritesItsResultBeforeTheInputIsBackOnlyWhereTheyAreApart) {
  for (const bool in_place : {false, true}) {
    Exchange exchange(Collective::all_reduce, in_place);
    EXPECT_FALSE(exchange.operation.advance()) << "the input is not back";
    EXPECT_EQ(exchange.operation.waiting_for().rank, 1);
    EXPECT_TRUE(exchange.operation.waiting_for().takes);
    EXPECT_EQ(exchange.output, std::vector<float>(5000, in_place ? 2 : 3));
    exchange.peer->has_read = true;
    EXPECT_TRUE(exchange.operation.advance());
    EXPECT_EQ(exchange.output, std::vector<float>(5000, 3));
  }
}

TEST(Operation, SendsWhatItCopiesBeforeItCopies) {
  Exchange exchange(Collective::all_gather, false);
  EXPECT_FALSE(exchange.operation.advance());
  EXPECT_EQ(exchange.peer->sends, 1);
  EXPECT_EQ(exchange.peer->output_when_sent, 9) << "nothing is copied yet";
  EXPECT_EQ(exchange.output.front(), 2);
  EXPECT_EQ(exchange.output[4999], 2) << "both halves";
  exchange.peer->has_read = true;
  EXPECT_TRUE(exchange.operation.advance());
  EXPECT_EQ(exchange.peer->sends, 1);
}

// Has read as many messages as the test says, and each can be read at once.
struct SlowReader final : IdleChannel {
  std::uint64_t read = 0;
  std::vector<const std::byte*> lent;
  void send(const Tag&, const std::byte* data, std::size_t, Copier) override { lent.push_back(data); }
  std::uint64_t sent() override { return read; }
  std::uint64_t published() override { return lent.size(); }
};

TEST(Operation, ThatLeavesCopiesWaitsForTheReadersOfTheCallWhosePlaceItTakes) {
  const std::unique_ptr<Plan> plan =
      make_plan(Call{.collective = Collective::broadcast, .dtype = DType::float32, .op = Op::sum, .count = 100'000},
                *find_algorithm(Collective::broadcast, Algorithm::one_shot), 0, Layout::of(3), 1, {},
                {.copies_once = true, .leaves_copies = true});
  std::array<PeerLink, 3> links;
  std::array<SlowReader*, 3> readers{};
  for (std::size_t peer = 1; peer < links.size(); ++peer) {
    auto channel = std::make_unique<SlowReader>();
    readers[peer] = channel.get();
    links[peer].channel = std::move(channel);
  }
  Workspace workspace;
  workspace.fit(*plan, [](std::size_t bytes) { return std::make_shared<SymmetricMemory>(nullptr, bytes); });
  std::vector<float> values(100'000, 3);
  Operation operation;
  const auto start = [&] {
    auto* const data = reinterpret_cast<std::byte*>(values.data());
    operation.start(*plan, Tag{}, links, workspace, data, data);
  };
  const std::size_t places = CopyRing::kAheadBytes / plan->scratch_bytes;
  for (std::size_t call = 0; call < places; ++call) {
    start();
    EXPECT_TRUE(operation.advance()) << "nobody has read anything";
  }
  start();
  readers[1]->read = 1;
  EXPECT_FALSE(operation.advance());
  EXPECT_EQ(operation.waiting_for().rank, 2);
  EXPECT_TRUE(operation.waiting_for().takes);
  EXPECT_EQ(readers[1]->lent.size(), places);
  readers[2]->read = 1;
  EXPECT_TRUE(operation.advance());
  EXPECT_EQ(readers[1]->lent.size(), places + 1);
  EXPECT_EQ(readers[1]->lent.back(), readers[1]->lent[0]);
  EXPECT_NE(readers[1]->lent[1], readers[1]->lent[0]);
}

}  // namespace
}  // namespace tutti::internal
