// All ranks of a communicator hear the same of its first failure, also when rank 0 has left, is stopped, or is dead.
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "net/free_port.h"
#include "runtime/processes.h"
#include "runtime/stories.h"
#include "runtime/timing.h"
#include "tutti/communicator.h"

namespace tutti::internal {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

class Verdict : public testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Wire, Verdict, testing::Values("shm", "tcp"), [](const auto& it) { return it.param; });

// Of the ranks but rank 0, which leaves the job. Nothing on rank 0.
std::optional<Communicator> join_without_zero(std::uint16_t port, const std::string& transport, int rank, int size) {
  Communicator world = Communicator::join(meeting_at(port, transport, rank, size));
  Communicator others = world.split(rank > 0 ? 1 : 0);
  if (rank == 0) return std::nullopt;
  return others;
}

// All-reduces on and on. What ends them.
Error end_of_calls(Communicator& communicator) {
  std::vector<float> values(1 << 18);
  try {
    while (true) communicator.all_reduce(std::span(values), Op::sum);
  } catch (const Error& error) {
    return error;
  }
}

TEST_P(Verdict, AnAbortIsHeardByAllAfterRankZeroHasLeft) {
  constexpr int kRanks = 4;
  const std::uint16_t port = free_port();
  Stories stories;
  Processes ranks(kRanks, [&](int r, const Processes::Report& report) {
    std::optional<Communicator> others = join_without_zero(port, GetParam(), r, kRanks);
    if (r == 0) return;
    others->barrier();
    if (r == 1) {
      std::this_thread::sleep_for(500ms);
      report('a');
      others->abort("out of cheese");
      ::pause();
    }
    try {
      others->barrier();
    } catch (const Error& error) {
      stories.tell(r, error);
    }
    report('h');
    ::pause();
  });
  EXPECT_EQ(ranks.status_of(0), 0);
  ASSERT_EQ(ranks.next_report(), 'a');
  const auto begin = Clock::now();
  for (int i = 0; i < 2; ++i) ASSERT_EQ(ranks.next_report(), 'h');
  EXPECT_LT(Clock::now() - begin, 5s);
  for (const int r : {2, 3}) EXPECT_EQ(stories.of(r), "aborted 0: rank 0 aborted: out of cheese");
  for (const int r : {1, 2, 3}) ranks.kill(r);
}

TEST_P(Verdict, AMismatchIsHeardByAllAfterRankZeroHasLeft) {
  constexpr int kRanks = 4;
  const std::uint16_t port = free_port();
  Stories stories;
  Processes ranks(kRanks, [&](int r, const Processes::Report& report) {
    std::optional<Communicator> others = join_without_zero(port, GetParam(), r, kRanks);
    if (r == 0) return;
    others->barrier();
    std::this_thread::sleep_for(500ms);
    report('j');
    std::vector<float> values(5);
    try {
      others->all_reduce(values.data(), values.data(), r == 2 ? 4 : 5, DType::float32, Op::sum);
      others->barrier();
      others->barrier();
    } catch (const Error& error) {
      stories.tell(r, error);
    }
    report('h');
    ::pause();
  });
  // Two may hear of it before the third has come.
  auto begin = Clock::now();
  for (int heard = 0; heard < 3;) {
    const char what = ranks.next_report();
    ASSERT_TRUE(what == 'j' || what == 'h') << what;
    if (what == 'h') ++heard;
    if (what == 'j') begin = Clock::now();
  }
  EXPECT_LT(Clock::now() - begin, 5s);
  for (const int r : {1, 2, 3}) {
    EXPECT_EQ(stories.of(r), stories.of(1));
    ranks.kill(r);
  }
  for (const std::string part : {"mismatch ", "float32 x 4", "float32 x 5"})
    EXPECT_NE(stories.of(1).find(part), std::string::npos) << stories.of(1);
}

// Of the two ranks the one that leaves later hears of it: rank 2.
TEST_P(Verdict, RanksThatLeaveAfterRankZeroAreStillCompared) {
  constexpr int kRanks = 3;
  const std::uint16_t port = free_port();
  Stories stories;
  const Arrivals left;
  Processes ranks(kRanks, [&](int r, const Processes::Report& report) {
    std::optional<Communicator> others = join_without_zero(port, GetParam(), r, kRanks);
    if (r == 0) return;
    others->barrier();
    std::this_thread::sleep_for(500ms);
    Communicator part = others->split(0);
    part.barrier();  // both have a channel to the other
    const bool in_order = r == 1 || left.wait_for(1);
    std::int32_t value = r;
    part.broadcast(std::span(&value, 1), part.rank());
    try {
      part.finalize();
    } catch (const Error& error) {
      stories.tell(r, error);
    }
    left.add();
    report(in_order ? 'h' : 'n');
    ::pause();
  });
  for (int i = 0; i < 2; ++i) ASSERT_EQ(ranks.next_report(), 'h');
  EXPECT_EQ(stories.of(1), "");
  EXPECT_EQ(stories.of(2).find("mismatch "), 0u) << stories.of(2);
  for (const int r : {1, 2}) ranks.kill(r);
}

// The others hear in about the time of silence. The rank itself hears why, once it goes on. (No calls:
// one that fails may wait ten seconds for a peer that was stopped in the middle of it, as communicator.h says.)
TEST_P(Verdict, AStoppedRankIsGivenUpInTimeAndHearsThatItWasExpelled) {
  constexpr int kRanks = 3;
  constexpr std::chrono::milliseconds kSilence{4000};  // the other ranks must speak in half of it
  for (const int victim : {0, 1}) {
    const std::uint16_t port = free_port();
    Stories stories;
    Processes ranks(kRanks, [&](int r, const Processes::Report& report) {
      Settings settings = meeting_at(port, GetParam(), r, kRanks);
      settings.heartbeat_timeout = kSilence;
      Communicator world = Communicator::join(settings);
      world.barrier();
      report('j');
      while (!world.failure()) std::this_thread::sleep_for(1ms);
      stories.tell(r, *world.failure());
      report('h');
      ::pause();
    });
    for (int i = 0; i < kRanks; ++i) ASSERT_EQ(ranks.next_report(), 'j');
    std::this_thread::sleep_for(100ms);
    const auto stopped = Clock::now();
    ranks.signal(victim, SIGSTOP);
    for (int i = 0; i < kRanks - 1; ++i) {
      ASSERT_EQ(ranks.next_report(), 'h');
      EXPECT_GT(Clock::now() - stopped, kSilence / 4);  // its last word may be old
    }
    EXPECT_LT(Clock::now() - stopped, 2 * kSilence + 2s);
    const auto goes_on = Clock::now();
    ranks.signal(victim, SIGCONT);
    ASSERT_EQ(ranks.next_report(), 'h');
    EXPECT_LT(Clock::now() - goes_on, 10s);
    const std::string name = "rank " + std::to_string(victim), number = std::to_string(victim);
    const std::string why = "no word from it for 4 s: its process is stopped, or its host unreachable";
    EXPECT_EQ(stories.of(victim), "expelled " + number + ": the other ranks have given " + name + " up: " + why);
    for (int r = 0; r < kRanks; ++r) {
      if (r != victim) {
        EXPECT_EQ(stories.of(r), "peer_lost " + number + ": " + name + " was lost: " + why);
      }
      ranks.kill(r);
    }
  }
}

// Its connections stay open: only the kernel says that its process has ended.
TEST_P(Verdict, ADeathIsHeardWithinASecondAlsoIfAForkedChildLivesOn) {
  constexpr int kRanks = 4;
  for (const int victim : {0, 2})
    for (Tries tries(1s); tries.go_on();) {
      const std::uint16_t port = free_port();
      Stories stories;
      Processes ranks(kRanks, [&](int r, const Processes::Report& report) {
        Communicator world = Communicator::join(meeting_at(port, GetParam(), r, kRanks));
        std::vector<float> values(1 << 18);
        world.all_reduce(std::span(values), Op::sum);
        if (r == victim && ::fork() == 0) {
          ::alarm(60);
          ::pause();
          ::_exit(0);
        }
        report('j');
        stories.tell(r, end_of_calls(world));
        report('h');
        ::pause();
      });
      for (int i = 0; i < kRanks; ++i) ASSERT_EQ(ranks.next_report(), 'j');
      std::this_thread::sleep_for(50ms);
      ranks.kill(victim);
      const auto death = Clock::now();
      for (int i = 0; i < kRanks - 1; ++i) ASSERT_EQ(ranks.next_report(), 'h');
      tries.took(Clock::now() - death);
      const std::string name = "rank " + std::to_string(victim), number = std::to_string(victim);
      for (int r = 0; r < kRanks; ++r) {
        if (r == victim) continue;
        EXPECT_EQ(stories.of(r),
                  "peer_lost " + number + ": " + name + " was lost: its process died (the kernel of its host says so)");
        ranks.kill(r);
      }
    }
}

// Rank 1 waits for rank 0, and that for rank 2, which is stopped and says nothing. Rank 1 is the first to wait for too
// long. What ranks 0 and 1 say.
std::vector<std::string> said_of_a_stopped_rank_behind_another() {
  constexpr int kRanks = 3;
  const std::uint16_t port = free_port();
  Stories stories;
  Processes ranks(kRanks, [&](int r, const Processes::Report& report) {
    Settings settings = meeting_at(port, "shm", r, kRanks);
    settings.heartbeat_timeout = 60s;
    Communicator world = Communicator::join(settings);
    world.barrier();
    report('j');
    if (r == 2) ::pause();
    world.set_timeout(4s);
    std::this_thread::sleep_for(r == 0 ? 200ms : 100ms);
    try {
      std::int32_t value = 1;
      world.broadcast(std::span(&value, 1), 2, {.algorithm = Algorithm::chain});
    } catch (const Error& error) {
      stories.tell(r, error);
    }
    report('h');
    ::pause();
  });
  for (int r = 0; r < kRanks; ++r) EXPECT_EQ(ranks.next_report(), 'j');
  ranks.signal(2, SIGSTOP);
  for (int r = 0; r < 2; ++r) EXPECT_EQ(ranks.next_report(), 'h');
  for (int r = 0; r < kRanks; ++r) ranks.kill(r);
  return {stories.of(0), stories.of(1)};
}

// Rank 0 knows better who holds the call up, if only by a second, in which it may get no processor: it may try again.
TEST(VerdictOnTheSilent, ARankThatDoesNotAnswerIsNamedAndNotTheOneThatWaitsForIt) {
  const auto is_right = [](const std::string& story) {
    return story.starts_with("timeout 2: rank 2 does not answer in broadcast #2");
  };
  std::vector<std::string> said;
  for (int tries = 0; tries < 3 && !(said.size() == 2 && is_right(said[0]) && is_right(said[1])); ++tries)
    said = said_of_a_stopped_rank_behind_another();
  for (const std::string& story : said) EXPECT_TRUE(is_right(story)) << story;
}

}  // namespace
}  // namespace tutti::internal
