// How calls end that cannot end well: on every rank, soon, and saying why.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <vector>

#include "net/free_port.h"
#include "runtime/processes.h"
#include "runtime/ranks.h"
#include "runtime/timing.h"

namespace tutti::internal {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

Settings settings_for(const std::string& transport) {
  Settings settings;
  settings.transport = transport;
  return settings;
}

class EveryWire : public testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Failure, EveryWire, testing::Values("shm", "tcp"), [](const auto& it) { return it.param; });

bool names(const std::optional<Error>& error, const std::string& text) {
  return error && std::string(error->what()).find(text) != std::string::npos;
}

// Every rank hears of it at that call or, having returned already, at the next one.
void expect_mismatch(const std::string& transport, const std::function<void(Communicator&)>& call,
                     const std::string& one, const std::string& other) {
  const auto thrown = outcomes(3, settings_for(transport), [&](Communicator& world) {
    call(world);
    world.barrier();
    std::this_thread::sleep_for(50ms);
    world.barrier();
  });
  for (const auto& error : thrown) {
    ASSERT_TRUE(error) << one << " against " << other << " went unnoticed";
    EXPECT_EQ(error->code, ErrorCode::mismatch) << error->what();
    EXPECT_TRUE(names(error, one)) << error->what();
    EXPECT_TRUE(names(error, other)) << error->what();
  }
}

TEST_P(EveryWire, RanksThatDisagreeAllHearBothCalls) {
  std::vector<float> buffers[3];
  for (auto& buffer : buffers) buffer.resize(100'000);
  const auto at = [&](Communicator& world) { return buffers[world.rank()].data(); };
  expect_mismatch(
      GetParam(),
      [&](Communicator& world) {
        world.all_reduce(at(world), at(world), world.rank() == 1 ? 4 : 5, DType::float32, Op::sum);
      },
      "float32 x 4", "float32 x 5");
  expect_mismatch(
      GetParam(),
      [&](Communicator& world) {
        world.all_reduce(at(world), at(world), world.rank() == 1 ? 100'000 : 99'999, DType::float32, Op::sum);
      },
      "float32 x 100000", "float32 x 99999");
  expect_mismatch(
      GetParam(),
      [&](Communicator& world) {
        world.all_reduce(at(world), at(world), 8, world.rank() == 2 ? DType::int32 : DType::float32, Op::sum);
      },
      "int32 x 8", "float32 x 8");
  expect_mismatch(
      GetParam(),
      [&](Communicator& world) {
        world.all_reduce(at(world), at(world), 8, DType::float32, world.rank() == 0 ? Op::max : Op::sum);
      },
      "max", "sum");
  expect_mismatch(
      GetParam(),
      [&](Communicator& world) { world.broadcast(at(world), 8, DType::float32, world.rank() == 0 ? 0 : 1); }, "root 0",
      "root 1");
  expect_mismatch(
      GetParam(),
      [&](Communicator& world) {
        world.rank() == 0 ? world.barrier() : world.all_reduce(at(world), at(world), 0, DType::float32, Op::sum);
      },
      "barrier", "all_reduce");
}

TEST_P(EveryWire, ARankThatDoesNotComeIsNamedWhenTheTimeIsUp) {
  Settings settings = settings_for(GetParam());
  settings.timeout = kRunsOut;
  settings.warn_after = 300ms;
  const auto begin = Clock::now();
  const auto thrown = outcomes(3, settings, [&](Communicator& world) {
    world.set_timeout(60s);
    world.barrier();
    world.set_timeout(0ms);  // the job's from here on
    if (world.rank() == 2) wait_for_failure(world);
    std::int32_t value = 1;
    world.all_reduce(std::span(&value, 1), Op::sum);
  });
  EXPECT_LT(Clock::now() - begin, 15s);
  for (const auto& error : thrown) {
    ASSERT_TRUE(error);
    EXPECT_EQ(error->code, ErrorCode::timeout) << error->what();
    EXPECT_TRUE(names(error, "rank 2 has not entered all_reduce #2")) << error->what();
    EXPECT_TRUE(names(error, "barrier #1")) << error->what();
  }
}

// A rank that only ever asks whether it is done is waiting too.
TEST_P(EveryWire, AskingAgainAndAgainHasADeadline) {
  Settings settings = settings_for(GetParam());
  settings.timeout = 400ms;
  const auto thrown = outcomes(2, settings, [&](Communicator& world) {
    world.set_timeout(20s);
    world.barrier();
    if (world.rank() == 0) world.set_timeout(0ms);  // the job's: no other rank has to be in time
    if (world.rank() == 1) wait_for_failure(world);
    Work work = world.start_barrier();
    const auto begin = Clock::now();
    while (!work.test()) {
      ASSERT_LT(Clock::now() - begin, 15s) << "rank " << world.rank();
      std::this_thread::sleep_for(1ms);
    }
  });
  for (const auto& error : thrown) {
    ASSERT_TRUE(error);
    EXPECT_EQ(error->code, ErrorCode::timeout) << error->what();
    EXPECT_TRUE(names(error, "rank 1 has not entered barrier #2")) << error->what();
  }
}

// Time in which nobody looked is not time waited: if it were, the second look would ask who is missing, and the third
// one would know. Rank 2 comes when the others have looked.
TEST_P(EveryWire, WhoLooksSeldomIsNotLate) {
  Settings settings = settings_for(GetParam());
  settings.timeout = 400ms;
  const Arrivals looked;
  const auto thrown = outcomes(3, settings, [&](Communicator& world) {
    if (world.rank() == 2) {
      EXPECT_TRUE(looked.wait_for(2));
      return world.barrier({.timeout = 20s});
    }
    Work work = world.start_barrier();
    EXPECT_NO_THROW(work.test());
    std::this_thread::sleep_for(700ms);
    EXPECT_NO_THROW(work.test());
    std::this_thread::sleep_for(50ms);
    EXPECT_NO_THROW(work.test());
    work.set_timeout(20s);
    looked.add();
    work.wait();
  });
  for (const auto& error : thrown) EXPECT_FALSE(error) << error->what();
}

TEST_P(EveryWire, ARankThatLeavesEarlyIsNamed) {
  const auto begin = Clock::now();
  const auto thrown = outcomes(3, settings_for(GetParam()), [&](Communicator& world) {
    world.barrier();
    if (world.rank() == 1) return;
    world.barrier();
  });
  EXPECT_LT(Clock::now() - begin, 15s);
  for (const int rank : {0, 2}) {
    ASSERT_TRUE(thrown[rank]);
    EXPECT_EQ(thrown[rank]->code, ErrorCode::mismatch) << thrown[rank]->what();
    EXPECT_TRUE(names(thrown[rank], "rank 1 no call #2 before it left")) << thrown[rank]->what();
  }
  EXPECT_FALSE(thrown[1]);
}

TEST_P(EveryWire, AnAbortReachesEveryoneAndStays) {
  const auto thrown = outcomes(4, settings_for(GetParam()), [&](Communicator& world) {
    world.barrier();
    EXPECT_FALSE(world.failure());
    world.split(0).barrier();  // nobody aborts before all have looked
    if (world.rank() == 3) world.abort("out of cheese");
    try {
      world.barrier();
    } catch (const Error&) {
    }
    EXPECT_TRUE(world.failure() && world.failure()->code == ErrorCode::aborted);
    world.barrier();
  });
  for (const auto& error : thrown) {
    ASSERT_TRUE(error);
    EXPECT_EQ(error->code, ErrorCode::aborted);
    EXPECT_TRUE(names(error, "out of cheese")) << error->what();
  }
}

// Ranks that go on for a moment longer must not read or write what a rank that has given up uses for something else.
TEST(Buffers, AreTheCallersAgainOnceACallHasThrown) {
  constexpr std::size_t kCount = 300'000;
  for (const std::string transport : {"inproc", "shm"})
    for (int round = 0; round < 10; ++round)
      EXPECT_THROW(Communicator::run_threads(
                       3,
                       [&](Communicator& world) {
                         Memory in = world.allocate(kCount * 4), out = world.allocate(kCount * 4);
                         auto* const result = reinterpret_cast<std::int32_t*>(out.data());
                         std::fill_n(reinterpret_cast<std::int32_t*>(in.data()), kCount, 1);
                         const auto end = Clock::now() + std::chrono::microseconds(300 * round);
                         try {
                           while (true) {
                             world.all_reduce(in.data(), out.data(), kCount, DType::int32, Op::sum);
                             ASSERT_EQ(std::count(result, result + kCount, 3), kCount);
                             if (world.rank() == round % 3 && Clock::now() > end) world.abort("enough");
                           }
                         } catch (const Error&) {
                           std::fill_n(reinterpret_cast<std::int32_t*>(in.data()), kCount, -1);
                           std::fill_n(result, kCount, -1);
                           std::this_thread::sleep_for(5ms);
                           EXPECT_EQ(std::count(result, result + kCount, -1), kCount);
                           throw;
                         }
                       },
                       transport),
                   Error);
}

// All-reduces on and on, until it hears that `victim`, a rank of the communicator, is lost: 'y'.
char outlive(Communicator& communicator, int victim) {
  std::vector<float> values(1 << 20);
  try {
    while (true) communicator.all_reduce(std::span(values), Op::sum);
  } catch (const Error& error) {
    if (error.code == ErrorCode::peer_lost && error.peer == victim) return 'y';
    std::fprintf(stderr, "rank %d: %s\n", communicator.rank(), error.what());
    return 'n';
  }
}

TEST_P(EveryWire, AKilledProcessIsNamedByEverySurvivorWithinASecond) {
  constexpr int kRanks = 4;
  for (const int victim : {0, 2})
    for (Tries tries(1s); tries.go_on();) {
      const std::uint16_t port = free_port();
      Processes ranks(kRanks, [&](int r, const Processes::Report& report) {
        Communicator world = Communicator::join(meeting_at(port, GetParam(), r, kRanks));
        world.barrier();
        report('j');
        report(outlive(world, victim));
      });
      for (int i = 0; i < kRanks; ++i) ASSERT_EQ(ranks.next_report(), 'j');
      std::this_thread::sleep_for(50ms);
      ranks.kill(victim);
      const auto death = Clock::now();
      for (int i = 0; i < kRanks - 1; ++i) EXPECT_EQ(ranks.next_report(), 'y');
      tries.took(Clock::now() - death);
    }
}

TEST_P(EveryWire, AKilledProcessIsToldWithoutACall) {
  constexpr int kRanks = 3;
  const std::uint16_t port = free_port();
  Processes ranks(kRanks, [&](int r, const Processes::Report& report) {
    Communicator world = Communicator::join(meeting_at(port, GetParam(), r, kRanks));
    world.barrier();
    report(world.failure() ? 'n' : 'j');
    while (!world.failure()) std::this_thread::sleep_for(1ms);
    const Error error = *world.failure();
    report(error.code == ErrorCode::peer_lost && error.peer == 1 && error.rank == r ? 'y' : 'n');
  });
  for (int i = 0; i < kRanks; ++i) ASSERT_EQ(ranks.next_report(), 'j');
  ranks.kill(1);
  for (int i = 0; i < kRanks - 1; ++i) EXPECT_EQ(ranks.next_report(), 'y');
}

// Without rank 0 there is no control plane: the connections themselves have to say it. Over shared memory, where one
// serves all communicators of two ranks, also to a rank whose calls the dead one has never entered.
TEST_P(EveryWire, AKilledProcessIsNamedAlsoAfterRankZeroHasLeft) {
  constexpr int kRanks = 3;
  for (const bool has_called : {true, false}) {
    if (!has_called && GetParam() != "shm") continue;
    const std::uint16_t port = free_port();
    Processes ranks(kRanks, [&](int r, const Processes::Report& report) {
      std::optional<Communicator> others;
      {
        Settings settings = meeting_at(port, GetParam(), r, kRanks);
        settings.heartbeat_timeout = 60s;  // not by its silence
        Communicator world = Communicator::join(settings);
        others = world.split(r > 0 ? 1 : 0);
        world.barrier();
      }
      if (r == 0) others.reset();
      report('j');
      if (r == 2 && !has_called) ::pause();
      if (r > 0) report(outlive(*others, 1));
    });
    for (int i = 0; i < kRanks; ++i) ASSERT_EQ(ranks.next_report(), 'j');
    std::this_thread::sleep_for(50ms);
    ranks.kill(2);
    const auto death = Clock::now();
    EXPECT_EQ(ranks.next_report(), 'y');
    EXPECT_LT(Clock::now() - death, 15s);  // the control plane is waited for no longer than a moment
  }
}

// A communicator's errors count its own ranks, and say what the job calls them where that differs.
TEST_P(EveryWire, ALostRankOfASplitIsNamedAsTheCommunicatorAndTheJobCallIt) {
  constexpr int kRanks = 3;
  const std::uint16_t port = free_port();
  Processes ranks(kRanks, [&](int r, const Processes::Report& report) {
    Communicator world = Communicator::join(meeting_at(port, GetParam(), r, kRanks));
    Communicator others = world.split(r > 0 ? 1 : 0);
    world.barrier();
    report('j');
    if (r == 0) ::pause();
    try {
      while (true) others.barrier();
    } catch (const Error& error) {
      const std::string said = error.what();
      const bool right = said.starts_with("rank 0 (of the job: 1): rank 1 (of the job: 2) was lost: its process died");
      if (!right) std::fprintf(stderr, "%s\n", said.c_str());
      report(right && error.rank == 0 && error.peer == 1 ? 'y' : 'n');
    }
  });
  for (int i = 0; i < kRanks; ++i) ASSERT_EQ(ranks.next_report(), 'j');
  std::this_thread::sleep_for(50ms);
  ranks.kill(2);
  EXPECT_EQ(ranks.next_report(), 'y');
  ranks.kill(0);
}

// A subgroup of the ranks that are left goes on.
TEST_P(EveryWire, RanksThatAreLeftMakeASubgroup) {
  constexpr int kRanks = 4;
  for (const int victim : {0, 1}) {
    const std::uint16_t port = free_port();
    Processes ranks(kRanks, [&](int r, const Processes::Report& report) {
      Communicator world = Communicator::join(meeting_at(port, GetParam(), r, kRanks));
      world.barrier();
      report('j');
      if (r == victim) ::pause();
      while (!world.failure()) std::this_thread::sleep_for(1ms);
      std::vector<int> left;
      for (int i = 0; i < kRanks; ++i)
        if (i != victim) left.push_back(i);
      bool right = true;
      try {
        Communicator rest = world.subgroup(left);
        for (int i = 0; i < 20; ++i) {
          std::vector<std::int64_t> values(i % 2 == 0 ? 1 : 10'000, r);
          rest.all_reduce(std::span(values), Op::sum);
          right = right && values.back() == 6 - victim;
        }
        rest.finalize();
      } catch (const Error& error) {
        std::fprintf(stderr, "%s\n", error.what());
        right = false;
      }
      report(right ? 'y' : 'n');
    });
    for (int i = 0; i < kRanks; ++i) ASSERT_EQ(ranks.next_report(), 'j');
    ranks.kill(victim);
    for (int i = 0; i < kRanks - 1; ++i) EXPECT_EQ(ranks.next_report(), 'y');
  }
}

// The receiver has forgotten by then what it called as its first call.
TEST_P(EveryWire, AMismatchWithACallOfLongAgoIsNotComparedWithAnotherCall) {
  const auto thrown = outcomes(3, settings_for(GetParam()), [&](Communicator& world) {
    std::int32_t value = 1;
    world.broadcast(std::span(&value, 1), world.rank() == 2 ? 2 : 1);
    for (int i = 0; i < 30; ++i) world.broadcast(std::span(&value, 1), 1);
    world.barrier();
  });
  bool found = false;
  for (const auto& error : thrown) {
    if (!error || error->code != ErrorCode::mismatch) continue;
    const std::string said = error->what();
    const bool compares =
        said.find("broadcast #1 ") != std::string::npos && said.find("did not; it is at") == std::string::npos;
    EXPECT_TRUE(!compares || said.find("root 1") != std::string::npos) << said;
    found = true;
  }
  EXPECT_TRUE(found);
}

}  // namespace
}  // namespace tutti::internal
