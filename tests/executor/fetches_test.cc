// Which bytes of a call are fetched for writing: what the plan says, if the channel says that this rank will write
// there.
#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <span>
#include <vector>

#include "executor/at_once.h"
#include "executor/idle_channel.h"
#include "executor/operation.h"

namespace tutti::internal {
namespace {

// Of a peer that has sent its message.
struct Shown final : IdleChannel {
  Shown(std::size_t count, bool will_rewrite) : message(count, 1), will(will_rewrite) {}
  std::vector<float> message;
  bool will, took = false, takes_for_writing = false, receives_for_writing = false;

  std::optional<std::size_t> most_at_once() const override { return 1 << 20; }
  bool prepare_at_once(const std::byte*, std::size_t, Copier) override { return true; }
  const std::byte* look_at_once(const Tag&, std::size_t) override {
    return reinterpret_cast<const std::byte*>(message.data());
  }
  void take_at_once(std::byte*, bool fetches_to_write) override { took = true, takes_for_writing = fetches_to_write; }
  std::uint64_t sent() override { return 1; }
  std::uint64_t received() override { return 1; }
  void receive(std::uint64_t, const Tag&, std::byte*, std::size_t, const ReceiveHints& hints) override {
    receives_for_writing = hints.fetches_to_write;
  }
  bool view(const Tag&, std::size_t, std::span<const std::byte>& here) override {
    here = std::as_bytes(std::span(message));
    return true;
  }
  bool will_rewrite() const override { return will; }
};

// Rank 0 of 2 ranks.
struct Fetches {
  Fetches(Collective collective, std::size_t count, std::size_t most, bool will_rewrite)
      : plan(make_plan(Call{.collective = collective, .dtype = DType::float32, .op = Op::sum, .count = count},
                       *find_algorithm(collective, Algorithm::one_shot), 0, Layout::of(2), 1,
                       {.cores = {.fetches_to_write_up_to = most}})),
        input(count, 1),
        output(2 * count) {
    auto channel = std::make_unique<Shown>(count, will_rewrite);
    peer = channel.get();
    links[1].channel = std::move(channel);
    workspace.fit(*plan, [](std::size_t bytes) { return std::make_shared<SymmetricMemory>(nullptr, bytes); });
  }
  const std::byte* from() const { return reinterpret_cast<const std::byte*>(input.data()); }
  std::byte* to() { return reinterpret_cast<std::byte*>(output.data()); }
  void call_at_once() {
    AtOnce at_once(*plan, links, workspace);
    ASSERT_TRUE(at_once.send(plan->tag, from(), to()));
    ASSERT_EQ(at_once.look(plan->tag), AtOnce::Arrival::whole);
    at_once.finish();
    ASSERT_TRUE(peer->took);
  }
  void call_by_operation() {
    Operation operation;
    operation.start(*plan, Tag{}, links, workspace, from(), to());
    ASSERT_TRUE(operation.advance());
  }
  bool combines_for_writing() const {
    EXPECT_FALSE(workspace.sources[0].fetches_to_write) << "its own input";
    return workspace.sources[1].fetches_to_write;
  }

  const std::unique_ptr<Plan> plan;
  std::vector<float> input, output;
  std::array<PeerLink, 2> links;
  Shown* peer = nullptr;
  Workspace workspace;
};

TEST(AtOnce, FetchesWhatThePlanSaysUnlessTheMessageIsShort) {
  for (const std::size_t count : {1023, 1024}) {
    for (const std::size_t most : {0, 1 << 20}) {
      for (const bool will_rewrite : {false, true}) {
        const bool fetches = count == 1024 && most > 0;
        Fetches moves(Collective::all_gather, count, most, will_rewrite);
        moves.call_at_once();
        EXPECT_EQ(moves.peer->takes_for_writing, fetches) << count << " elements; the channel knows where they lie";
        Fetches combines(Collective::all_reduce, count, most, will_rewrite);
        combines.call_at_once();
        EXPECT_EQ(combines.combines_for_writing(), fetches && will_rewrite) << count;
      }
    }
  }
}

TEST(Operation, FetchesWhatThePlanSaysIfItWillWriteThere) {
  for (const std::size_t most : {0, 1 << 20}) {
    for (const bool will_rewrite : {false, true}) {
      Fetches moves(Collective::all_gather, 5000, most, will_rewrite);
      moves.call_by_operation();
      EXPECT_EQ(moves.peer->receives_for_writing, most > 0);
      Fetches combines(Collective::all_reduce, 5000, most, will_rewrite);
      combines.call_by_operation();
      EXPECT_EQ(combines.combines_for_writing(), most > 0 && will_rewrite);
    }
  }
}

}  // namespace
}  // namespace tutti::internal
