// Going on after a loss.
#include <gtest/gtest.h>

#include <chrono>
#include <cstdio>
#include <latch>
#include <thread>

#include "net/free_port.h"
#include "runtime/processes.h"
#include "runtime/ranks.h"
#include "runtime/timing.h"

namespace tutti::internal {
namespace {

using namespace std::chrono_literals;

class Shrink : public ::testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Over, Shrink, ::testing::Values("shm", "tcp"), [](const auto& each) { return each.param; });

// The sum of the ranks of the job that are in `world`.
std::int64_t sum_of(Communicator& world, int job_rank) {
  std::vector<std::int64_t> values(5000, job_rank);
  world.all_reduce(std::span(values), Op::sum);
  return values.back();
}

// Ranks die one after the other, rank 0 first; those that are left shrink each time, down to one.
TEST_P(Shrink, GoesOnAfterOneLossAfterTheOther) {
  constexpr int kRanks = 5;
  const std::uint16_t port = free_port();
  const std::vector<int> deaths{0, 3, 1, 4};
  Processes ranks(kRanks, [&](int r, const Processes::Report& report) {
    Communicator world = Communicator::join(meeting_at(port, GetParam(), r, kRanks));
    std::shared_ptr<Communicator> current = std::make_shared<Communicator>(std::move(world));
    std::int64_t expected = 0 + 1 + 2 + 3 + 4;
    for (const int dead : deaths) {
      bool right = sum_of(*current, r) == expected && static_cast<int>(current->job_ranks().size()) == current->size();
      report(right ? 'y' : 'n');
      if (r == dead) ::pause();
      try {
        while (true) sum_of(*current, r);
      } catch (const Error& error) {
        if (error.code != ErrorCode::peer_lost) std::fprintf(stderr, "%s\n", error.what());
      }
      try {
        current = std::make_shared<Communicator>(current->shrink());
      } catch (const Error& error) {
        std::fprintf(stderr, "%s\n", error.what());
        report('n');
        return;
      }
      expected -= dead;
    }
    report(current->size() == 1 && sum_of(*current, r) == r ? 'z' : 'n');
  });
  int left = kRanks;
  for (const int dead : deaths) {
    for (int i = 0; i < left; ++i) ASSERT_EQ(ranks.next_report(), 'y') << "before the death of rank " << dead;
    ranks.kill(dead);
    --left;
  }
  EXPECT_EQ(ranks.next_report(), 'z');
}

// A rank dies while the others wait for it to shrink: they go on without it.
TEST_P(Shrink, IsNotHeldUpByARankThatDiesMeanwhile) {
  constexpr int kRanks = 4;
  const std::uint16_t port = free_port();
  Processes ranks(kRanks, [&](int r, const Processes::Report& report) {
    Communicator world = Communicator::join(meeting_at(port, GetParam(), r, kRanks));
    world.barrier();
    report('j');
    if (r == 1) ::pause();
    if (r == 3) std::this_thread::sleep_for(300ms), ::pause();  // it lives, and does not shrink
    while (!world.failure()) std::this_thread::sleep_for(1ms);
    report('w');
    Communicator rest = world.shrink();
    report(rest.job_ranks() == std::vector{0, 2} && sum_of(rest, r) == 2 ? 'y' : 'n');
  });
  for (int i = 0; i < kRanks; ++i) ASSERT_EQ(ranks.next_report(), 'j');
  ranks.kill(1);
  for (int i = 0; i < 2; ++i) ASSERT_EQ(ranks.next_report(), 'w');
  std::this_thread::sleep_for(100ms);
  ranks.kill(3);
  for (int i = 0; i < 2; ++i) EXPECT_EQ(ranks.next_report(), 'y');
}

TEST_P(Shrink, WithoutALossKeepsAllRanks) {
  Settings settings;
  settings.transport = GetParam();
  const auto thrown = outcomes(3, settings, [](Communicator& world) {
    Communicator same = world.shrink();
    EXPECT_EQ(same.size(), 3);
    EXPECT_EQ(same.rank(), world.rank());
    same.barrier();
    world.barrier();
  });
  for (const auto& error : thrown) EXPECT_FALSE(error) << error->what();
}

TEST_P(Shrink, ARankThatDoesNotComeEndsTheWait) {
  Settings settings;
  settings.transport = GetParam();
  settings.timeout = kRunsOut;
  std::latch have_thrown(2);
  const auto thrown = outcomes(3, settings, [&](Communicator& world) {
    if (world.rank() == 2) return have_thrown.wait();
    try {
      world.shrink();
      ADD_FAILURE() << "rank " << world.rank() << " has shrunk without rank 2";
    } catch (const Error& error) {
      EXPECT_EQ(error.code, ErrorCode::timeout);
      EXPECT_EQ(error.peer, 2);
      EXPECT_EQ(reason_of(error), "shrink: all that are left but rank 2 have called it within 2.5 s");
    }
    have_thrown.arrive_and_wait();
  });
  for (const auto& error : thrown) EXPECT_FALSE(error) << error->what();
}

// Two ranks have given up when the third one comes: it must not believe that it has made something with them.
TEST_P(Shrink, WhoHasGivenUpIsNotCounted) {
  Settings settings;
  settings.transport = GetParam();
  settings.timeout = kRunsOut;
  std::latch two_have_thrown(2), all_have_thrown(3);
  const auto thrown = outcomes(3, settings, [&](Communicator& world) {
    if (world.rank() == 2) {
      two_have_thrown.wait();
      world.set_timeout(300ms);  // nobody has to be in time for that
    }
    try {
      world.shrink();
      ADD_FAILURE() << "rank " << world.rank() << " has shrunk alone";
    } catch (const Error& error) {
      EXPECT_EQ(reason_of(error), world.rank() == 2
                                      ? "shrink: all that are left but ranks 0 and 1 have called it within 0.3 s"
                                      : "shrink: all that are left but rank 2 have called it within 2.5 s");
    }
    if (world.rank() != 2) two_have_thrown.count_down();
    all_have_thrown.arrive_and_wait();
    world.set_timeout(20s);
    EXPECT_EQ(world.split(world.rank() == 1 ? 1 : 0).size(), world.rank() == 1 ? 1 : 2);
    EXPECT_EQ(world.shrink().size(), 3);
  });
  for (const auto& error : thrown) EXPECT_FALSE(error) << error->what();
}

}  // namespace
}  // namespace tutti::internal
