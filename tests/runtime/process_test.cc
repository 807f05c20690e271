// What becomes of a job when the processes of its ranks fork or exit.
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <memory>
#include <thread>

#include "net/free_port.h"
#include "runtime/processes.h"
#include "runtime/ranks.h"

namespace {
bool is_forked_child = false;
}

#ifdef __SANITIZE_ADDRESS__
// What the threads of the parent held is found by nobody in the child.
extern "C" int __lsan_is_turned_off();  // lsan_interface.h
extern "C" int __lsan_is_turned_off() { return is_forked_child ? 1 : 0; }
#endif

namespace tutti::internal {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

class Process : public testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Wire, Process, testing::Values("shm", "tcp"), [](const auto& it) { return it.param; });

bool sums_are_right(Communicator& world, int calls) {
  for (int i = 0; i < calls; ++i) {
    std::vector<std::int32_t> values(i % 2 == 0 ? 2 : 20'000, i + world.rank());
    world.all_reduce(std::span(values), Op::sum);
    const int expected = world.size() * i + world.size() * (world.size() - 1) / 2;
    if (std::count(values.begin(), values.end(), expected) != static_cast<std::ptrdiff_t>(values.size())) return false;
  }
  return true;
}

// Whether this call throws as calls in forked children do.
template <class Call>
bool is_refused(Call call) try {
  call();
  return false;
} catch (const Error& error) {
  return error.code == ErrorCode::unsupported && std::string(error.what()).find("forked") != std::string::npos;
}

// Destroys what `it` has, here and now.
template <class T>
void destroy(T& it) {
  const T taken = std::move(it);
}

// What a forked child does, and the exit status that says that it went as it should.
int in_child(Communicator& world, Work& started, Memory& memory) {
  std::int32_t value = 1;
  const bool refused = is_refused([&] { world.all_reduce(std::span(&value, 1), Op::sum); }) &&
                       is_refused([&] { world.broadcast(std::span(&value, 1), 0); }) &&
                       is_refused([&] { world.start_barrier().wait(); }) && is_refused([&] { started.wait(); }) &&
                       is_refused([&] { started.test(); }) && is_refused([&] { world.split(0); }) &&
                       is_refused([&] { world.allocate(100); }) && is_refused([&] { world.abort("child"); }) &&
                       is_refused([&] { world.register_memory(&value, sizeof value); });
  const bool shared = memory.as<std::int32_t>()[0] == 7;
  // All of it is destroyed here, as at the end of a program.
  destroy(world);
  destroy(started);
  destroy(memory);
#ifndef __SANITIZE_THREAD__  // which cannot start threads in a child of a process that has some
  Communicator::run_threads(
      2, [](Communicator& own) { own.barrier(); }, "shm");  // a job of its own
#endif
  return refused && shared ? 0 : 1;
}

TEST_P(Process, AForkedChildIsRefusedAndDisturbsNobody) {
  constexpr int kRanks = 3;
  const std::uint16_t port = free_port();
  Processes ranks(kRanks, [&](int r, const Processes::Report& report) {
    Communicator world = Communicator::join(meeting_at(port, GetParam(), r, kRanks));
    Memory memory = world.allocate(4096);
    memory.as<std::int32_t>()[0] = 7;
    bool right = sums_are_right(world, 4);
    for (int i = 0; i < 3; ++i) {
      Work started = world.start_barrier();
      const pid_t child = fork();
      if (child == 0) {
        is_forked_child = true;
        std::exit(in_child(world, started, memory));
      }
      right = right && sums_are_right(world, 20);
      started.wait();
      int status = 0;
      right = ::waitpid(child, &status, 0) == child && status == 0 && right;
      Communicator part = world.split(0);
      right = right && sums_are_right(part, 4) && memory.as<std::int32_t>()[0] == 7;
    }
    report(right ? 'y' : 'n');
    world.finalize();
  });
  for (int r = 0; r < kRanks; ++r) EXPECT_EQ(ranks.next_report(), 'y');
  for (int r = 0; r < kRanks; ++r) EXPECT_EQ(ranks.status_of(r), 0);
}

// Threads of the parent may hold any lock at the moment of the fork.
TEST_P(Process, AChildForkedWhileOtherThreadsCallIsRefusedToo) {
  constexpr int kRanks = 2;
  const std::uint16_t port = free_port();
  Processes ranks(kRanks, [&](int r, const Processes::Report& report) {
    Communicator world = Communicator::join(meeting_at(port, GetParam(), r, kRanks));
    Communicator other = world.split(0);
    std::thread caller([&] { report(sums_are_right(other, 300) ? 'y' : 'n'); });
    bool right = true;
    for (int i = 0; i < 10; ++i) {
      const pid_t child = fork();
      if (child == 0) ::_exit(is_refused([&] { world.barrier(); }) ? 0 : 1);
      int status = 0;
      right = ::waitpid(child, &status, 0) == child && status == 0 && right;
    }
    caller.join();
    report(right ? 'y' : 'n');
  });
  for (int i = 0; i < 2 * kRanks; ++i) EXPECT_EQ(ranks.next_report(), 'y');
}

void barrier_or_end(Communicator& world) try { world.barrier(); } catch (const Error& error) {
  std::fprintf(stderr, "%s\n", error.what());
  ::_exit(1);
}

// How the ranks of a job end whose communicator nobody destroys.
void end_by(const std::string& way, Communicator&& world) {
  if (way == "static") {
    static Communicator kept(std::move(world));
    std::exit(0);
  }
  static Communicator* const kept = new Communicator(std::move(world));  // reachable, and never destroyed
  static_cast<void>(kept);
  if (way == "exit") std::exit(0);
  if (way == "quick_exit") std::quick_exit(0);
  ::signal(SIGABRT, SIG_DFL);
  std::abort();  // as an exception that nobody catches
}

TEST_P(Process, RanksThatHaveCompletedEndWell) {
  constexpr int kRanks = 4;
  for (const std::string way : {"static", "exit", "quick_exit"})
    for (int i = 0; i < 5; ++i) {
      const std::uint16_t port = free_port();
      Processes ranks(kRanks, [&](int r, const Processes::Report&) {
        Communicator world = Communicator::join(meeting_at(port, GetParam(), r, kRanks));
        barrier_or_end(world);
        end_by(way, std::move(world));
      });
      for (int r = 0; r < kRanks; ++r) EXPECT_EQ(ranks.status_of(r), 0) << way << ", rank " << r;
    }
}

TEST_P(Process, RanksThatHaveCompletedDoNotMindAnothersDeath) {
  constexpr int kRanks = 4;
  for (const int victim : {0, 2})
    for (int i = 0; i < 5; ++i) {
      const std::uint16_t port = free_port();
      Processes ranks(kRanks, [&](int r, const Processes::Report&) {
        Communicator world = Communicator::join(meeting_at(port, GetParam(), r, kRanks));
        barrier_or_end(world);
        if (r == victim) end_by("abort", std::move(world));
      });
      for (int r = 0; r < kRanks; ++r)
        EXPECT_EQ(ranks.status_of(r), r == victim ? 128 + SIGABRT : 0) << "rank " << r << ", victim " << victim;
    }
}

// Nothing is owed to it: what it needs has been sent.
TEST_P(Process, NobodyWaitsInLeavingForARankThatIsLate) {
  for (const int late : {0, 1}) {
    Settings settings;
    settings.transport = GetParam();
    const auto thrown = outcomes(3, settings, [&](Communicator& world) {
      world.barrier();
      if (world.rank() == late) std::this_thread::sleep_for(1500ms);
      const auto begin = Clock::now();
      destroy(world);
      EXPECT_LT(Clock::now() - begin, 900ms);
    });
    for (const auto& error : thrown) EXPECT_FALSE(error) << error->what();
  }
}

}  // namespace
}  // namespace tutti::internal
