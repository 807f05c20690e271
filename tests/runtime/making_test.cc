// split() and allocate() end on all ranks in the same way, whatever happens meanwhile.
#include "runtime/making.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "net/free_port.h"
#include "runtime/processes.h"
#include "runtime/ranks.h"
#include "runtime/stories.h"
#include "runtime/timing.h"

namespace tutti::internal {
namespace {

using namespace std::chrono_literals;

class Making : public testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Wire, Making, testing::Values("shm", "tcp"), [](const auto& it) { return it.param; });

// Makes one thing after the other. What ends that, and how many things were made.
Error end_of_making(Communicator& world) {
  int made = 0;
  try {
    while (true) {
      const Communicator half = world.split(world.rank() % 2);
      ++made;
      const Memory memory = world.allocate(8192);
      ++made;
    }
  } catch (const Error& error) {
    const std::string text = error.what();
    return {error.code, "made: " + std::to_string(made) + " made" + text.substr(text.find(": ")), -1, error.peer};
  }
}

TEST_P(Making, HasMadeTheSameOnAllRanksWhenOneDies) {
  constexpr int kRanks = 4;
  for (int round = 0; round < 12; ++round) {
    const int victim = round % kRanks;
    const std::uint16_t port = free_port();
    Stories stories;
    Processes ranks(kRanks, [&](int r, const Processes::Report& report) {
      Communicator world = Communicator::join(meeting_at(port, GetParam(), r, kRanks));
      world.barrier();
      std::thread death([&] {
        std::this_thread::sleep_for(std::chrono::microseconds(300 + 370 * round));
        if (r == victim) ::kill(::getpid(), SIGKILL);
      });
      stories.tell(r, end_of_making(world));
      report('t');
      death.join();
      ::pause();
    });
    for (int i = 0; i < kRanks - 1; ++i) ASSERT_EQ(ranks.next_report(), 't');
    const int first = victim == 0 ? 1 : 0;
    EXPECT_TRUE(stories.of(first).starts_with("peer_lost " + std::to_string(victim))) << stories.of(first);
    for (int r = 0; r < kRanks; ++r) {
      if (r == victim) continue;
      EXPECT_EQ(stories.of(r), stories.of(first)) << "round " << round;
      ranks.kill(r);
    }
  }
}

// All have said what they want, and one of them does not come to an end with its part.
TEST(MakingOfARank, WhoDoesNotVoteIsNamedByAll) {
  constexpr int kRanks = 3;
  const auto store = make_memory_store();
  std::vector<std::optional<Error>> thrown(kRanks);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < kRanks; ++rank)
    threads.emplace_back([&, rank] {
      Settings settings{.rank = rank, .size = kRanks};
      settings.timeout = kRunsOut;
      const auto job = Job::join(settings, store.get());
      const auto group = Group::make(job, 7, Members({0, 1, 2}, rank));
      try {
        make_on_all(*group, "split", "could not", [&] {
          for (int i = 0; rank == 1 && i < 20'000 && !group->failure(); ++i) std::this_thread::sleep_for(1ms);
          return true;
        });
      } catch (const Error& error) {
        thrown[static_cast<std::size_t>(rank)] = error;
      }
    });
  for (std::thread& thread : threads) thread.join();
  for (const auto& error : thrown) {
    ASSERT_TRUE(error);
    EXPECT_EQ(error->code, ErrorCode::timeout);
    EXPECT_EQ(error->peer, 1);
    EXPECT_EQ(reason_of(*error), "all but rank 1 have made it within 2.5 s");
  }
}

// All say the same of the same rank, the one at fault too.
TEST(MakingOnAll, NamesTheSameRankInTheSameWordsOnEveryRank) {
  const auto expect = [](ErrorCode code, int peer, const std::string& words,
                         const std::function<void(Communicator&)>& make) {
    for (const auto& error : outcomes(4, Settings(), make)) {
      ASSERT_TRUE(error);
      EXPECT_EQ(error->code, code) << error->what();
      EXPECT_EQ(error->peer, peer) << error->what();
      EXPECT_TRUE(std::string(error->what()).starts_with(words)) << error->what();
    }
  };
  expect(ErrorCode::invalid_argument, 2,
         "allocate: rank 0 asks for 100 bytes, rank 2 for 200; all must ask for the same",
         [](Communicator& world) { world.allocate(world.rank() < 2 ? 100 : 200); });
  expect(ErrorCode::mismatch, 1, R"(make_operator: rank 0 calls it "first", rank 1 "second")", [](Communicator& world) {
    world.make_operator(world.rank() % 2 == 0 ? "first" : "second",
                        [](const void*, const void*, void*, std::size_t) {});
  });
  expect(ErrorCode::system, 0, "allocate: rank 0 has no room for ",
         [](Communicator& world) { world.allocate(std::size_t{1} << 60); });
}

}  // namespace
}  // namespace tutti::internal
