// The places of calls that leave copies to be read later: who waits for whom, and how long memory is kept.
#include "executor/scratch.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <memory>
#include <vector>

#include "executor/idle_channel.h"

namespace tutti::internal {
namespace {

// A peer that has read as many messages as the test says.
struct Keeper final : IdleChannel {
  std::uint64_t read = 0;
  std::vector<std::shared_ptr<void>> kept;
  std::uint64_t sent() override { return read; }
  void keep(std::shared_ptr<void> memory) override { kept.push_back(std::move(memory)); }
};

class ScratchOf : public testing::Test {
 protected:
  ScratchOf() {
    for (std::size_t peer = 1; peer < links_.size(); ++peer) {
      auto channel = std::make_unique<Keeper>();
      readers_[peer] = channel.get();
      links_[peer].channel = std::move(channel);
    }
    set_bytes(4096);
  }
  void set_bytes(std::size_t bytes) {
    plan_.leaves_copies = true;
    plan_.scratch_bytes = bytes;
    scratch_.fit(plan_, [this](std::size_t of) {
      auto memory = std::make_shared<SymmetricMemory>(nullptr, of);
      allocated_.push_back(memory);
      return memory;
    });
  }
  // A call that sends one message to each peer. Where it lies.
  std::byte* call() {
    std::byte* const at = scratch_.begin(plan_);
    EXPECT_TRUE(is_read());
    for (std::size_t peer = 1; peer < links_.size(); ++peer) ++links_[peer].sent;
    scratch_.leave(links_);
    return at;
  }
  bool is_read() { return scratch_.is_read(links_, reader_); }
  std::size_t alive() const {
    return static_cast<std::size_t>(std::ranges::count_if(allocated_, [](const auto& of) { return !of.expired(); }));
  }

  Plan plan_;
  std::array<PeerLink, 3> links_;
  std::array<Keeper*, 3> readers_{};
  std::vector<std::weak_ptr<SymmetricMemory>> allocated_;
  Scratch scratch_;
  int reader_ = -1;
};

TEST_F(ScratchOf, CallsTakeTwoPlacesInTurn) {
  std::byte *const first = call(), *const second = call();
  EXPECT_NE(first, second);
  for (Keeper* const reader : {readers_[1], readers_[2]}) reader->read = 2;
  EXPECT_EQ(call(), first);
  EXPECT_EQ(call(), second);
}

TEST_F(ScratchOf, ACallWaitsForTheReadersOfTheCallBeforeTheLastOne) {
  call();
  call();
  readers_[1]->read = 2;
  scratch_.begin(plan_);
  EXPECT_FALSE(is_read());
  EXPECT_EQ(reader_, 2);
  readers_[2]->read = 1;
  EXPECT_TRUE(is_read());
}

TEST_F(ScratchOf, OutgrownMemoryIsKeptUntilItHasBeenRead) {
  call();
  call();
  EXPECT_EQ(alive(), 2u);
  set_bytes(8192);
  EXPECT_EQ(alive(), 4u);
  readers_[1]->read = readers_[2]->read = 1;
  call();
  EXPECT_EQ(alive(), 3u);
  readers_[1]->read = readers_[2]->read = 2;
  call();
  EXPECT_EQ(alive(), 2u);
}

TEST_F(ScratchOf, MemoryThatHasBeenReadIsNotKept) {
  call();
  readers_[1]->read = readers_[2]->read = 1;
  call();
  readers_[1]->read = readers_[2]->read = 2;
  scratch_.begin(plan_);
  EXPECT_TRUE(is_read());
  set_bytes(8192);
  EXPECT_EQ(alive(), 3u) << "of one place nobody has asked";
}

// Each channel knows what it still lends.
TEST_F(ScratchOf, ChannelsAreHandedAllMemory) {
  call();
  call();
  set_bytes(8192);
  scratch_.hand_to(links_);
  scratch_ = Scratch();
  for (const Keeper* const reader : {readers_[1], readers_[2]}) EXPECT_EQ(reader->kept.size(), 4u);
  EXPECT_EQ(alive(), 4u);
}

TEST_F(ScratchOf, APlanThatLeavesNothingHasAPlaceOfItsOwn) {
  std::byte* const left = call();
  plan_.leaves_copies = false;
  scratch_.fit(plan_, [](std::size_t of) { return std::make_shared<SymmetricMemory>(nullptr, of); });
  std::byte* const own = scratch_.begin(plan_);
  EXPECT_NE(own, left);
  EXPECT_EQ(scratch_.begin(plan_), own);
}

}  // namespace
}  // namespace tutti::internal
