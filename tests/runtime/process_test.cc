// What becomes of a job when the processes of its ranks fork or exit.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <memory>
#include <optional>
#include <thread>

#include "net/free_port.h"
#include "runtime/any_call.h"
#include "runtime/processes.h"
#include "runtime/ranks.h"
#include "runtime/timing.h"

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

// Every collective, started too, of host memory and of what is said to be a device's.
bool refuses_all_collectives(Communicator& world) {
  std::vector<std::int32_t> in(world.size()), out(world.size());
  for (int kind = 0; kind <= static_cast<int>(Collective::exclusive_scan); ++kind) {
    const CallSpec spec{.collective = static_cast<Collective>(kind), .dtype = DType::int32, .count = 1};
    for (const MemoryKind memory : {MemoryKind::automatic, MemoryKind::device}) {
      const ConstBuffer from(in.data(), memory, 0);
      const Buffer to(out.data(), memory, 0);
      if (!is_refused([&] { AnyCall::run(world, spec, from, to); }) ||
          !is_refused([&] { AnyCall::start(world, spec, from, to).wait(); }))
        return false;
    }
  }
  return true;
}

// What only reads what joining has settled.
bool answers(const Communicator& world, int rank, int size) {
  return world.rank() == rank && world.size() == size && !world.table().empty() &&
         world.choose(Collective::all_reduce, 2, DType::int32) != Algorithm::automatic;
}

// What a forked child does, and the exit status that says that it went as it should.
int in_child(Communicator& world, Work& started, Work& ended, Memory& memory, Communicator& part) {
  std::int32_t value = 1;
  const bool refused =
      refuses_all_collectives(world) && is_refused([&] { started.wait(); }) && is_refused([&] { started.test(); }) &&
      is_refused([&] { ended.wait(); }) && is_refused([&] { started.set_timeout(std::chrono::seconds(1)); }) &&
      is_refused([&] { world.split(0); }) && is_refused([&] { world.allocate(100); }) &&
      is_refused([&] { world.subgroup(std::vector<int>{world.rank()}); }) &&
      is_refused([&] { world.abort("child"); }) && is_refused([&] { world.failure(); }) &&
      is_refused([&] { world.register_memory(&value, sizeof value); }) && is_refused([&] { part.finalize(); });
  const bool shared = memory.as<std::int32_t>()[0] == 7;
  // All of it is destroyed here, as at the end of a program.
  destroy(world);
  destroy(started);
  destroy(ended);
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
      Communicator part = world.split(0);
      Work ended = world.start_barrier();
      ended.wait();
      Work started = world.start_barrier();
      const pid_t child = fork();
      if (child == 0) {
        is_forked_child = true;
        std::exit(answers(world, r, kRanks) ? in_child(world, started, ended, memory, part) : 1);
      }
      right = right && sums_are_right(world, 20);
      started.wait();
      int status = 0;
      right = ::waitpid(child, &status, 0) == child && status == 0 && right;
      right = right && sums_are_right(part, 4) && memory.as<std::int32_t>()[0] == 7;
    }
    report(right ? 'y' : 'n');
    world.finalize();
  });
  for (int r = 0; r < kRanks; ++r) EXPECT_EQ(ranks.next_report(), 'y');
  for (int r = 0; r < kRanks; ++r) EXPECT_EQ(ranks.status_of(r), 0);
}

// A child ends in each way that there is, while the parent has a call under way that moves data.
TEST_P(Process, AChildMayEndInAnyWayDuringACallOfItsParent) {
  constexpr int kRanks = 2;
  constexpr std::size_t kCount = 2'000'000;
  for (const Progress progress : {Progress::caller, Progress::thread}) {
    const std::uint16_t port = free_port();
    Processes ranks(kRanks, [&](int r, const Processes::Report& report) {
      Settings settings = meeting_at(port, GetParam(), r, kRanks);
      settings.progress = progress;
      static std::optional<Communicator> world, part;  // which exit() destroys
      world.emplace(Communicator::join(settings));
      part.emplace(world->subgroup(std::vector<int>{1, 0}));
      bool right = true;
      for (const std::string way : {"exit", "quick_exit", "_exit", "destroy", "finalize", "call", "signal"}) {
        std::vector<std::int32_t> values(kCount, r + 1), others(kCount, r + 1);
        Work work = world->start_all_reduce(values.data(), values.data(), kCount, DType::int32, Op::sum);
        Work other = part->start_all_reduce(others.data(), others.data(), kCount, DType::int32, Op::sum);
        const pid_t child = fork();
        if (child == 0) {
          is_forked_child = true;
          bool refused = true;
          if (way == "call") refused = is_refused([&] { other.wait(); }) && is_refused([&] { world->barrier(); });
          if (way == "finalize") refused = is_refused([&] { part->finalize(); });
          if (way == "destroy") {
            part.reset();
            world.reset();
          }
          if (way == "quick_exit") std::quick_exit(0);
          if (way == "_exit") ::_exit(0);
          if (way == "signal") ::kill(::getpid(), SIGKILL);
          std::exit(refused ? 0 : 1);
        }
        int status = -1;
        right = ::waitpid(child, &status, 0) == child && status == (way == "signal" ? SIGKILL : 0) && right;
        if (!right) std::fprintf(stderr, "%s: status %d\n", way.c_str(), status);
        work.wait();
        other.wait();
        right = right && std::count(values.begin(), values.end(), 3) == kCount && values == others;
        right = right && sums_are_right(*world, 10) && sums_are_right(*part, 10);
      }
      report(right ? 'y' : 'n');
      part.reset();
      world->finalize();
    });
    for (int r = 0; r < kRanks; ++r) EXPECT_EQ(ranks.next_report(), 'y');
    for (int r = 0; r < kRanks; ++r) EXPECT_EQ(ranks.status_of(r), 0);
  }
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

// ThreadSanitizer cannot start threads in a child of a process that has some. AddressSanitizer (GCC 12) leaves a child
// the locks of its allocator as another thread held them.
#if !defined(__SANITIZE_THREAD__) && !defined(__SANITIZE_ADDRESS__)
// Whatever the parent's threads were about when it forked.
TEST(ForkedChild, MayJoinAJobOfItsOwnWhateverOtherThreadsWereAbout) {
  const auto join = [] {
    Communicator::run_threads(
        2, [](Communicator& world) { world.barrier(); }, "shm");
  };
  std::atomic<bool> ends{false};
  std::thread joiner([&] {
    while (!ends) join();
  });
  for (int i = 0; i < 20; ++i) {
    const pid_t child = fork();
    if (child == 0) {
      ::alarm(20);
      join();
      ::_exit(0);
    }
    int status = -1;
    EXPECT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
  }
  ends = true;
  joiner.join();
}
#endif

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
      const Arrivals through;  // the victim may be through the barrier before the others are
      Processes ranks(kRanks, [&](int r, const Processes::Report&) {
        Communicator world = Communicator::join(meeting_at(port, GetParam(), r, kRanks));
        barrier_or_end(world);
        if (r != victim) return through.add();
        if (!through.wait_for(kRanks - 1)) ::_exit(2);
        end_by("abort", std::move(world));
      });
      for (int r = 0; r < kRanks; ++r)
        EXPECT_EQ(ranks.status_of(r), r == victim ? 128 + SIGABRT : 0) << "rank " << r << ", victim " << victim;
    }
}

// What a rank said before it ended counts, not that it ended: whoever gives up may end his process at once.
TEST_P(Process, WhoAbortsAndEndsAtOnceIsSaidToHaveAborted) {
  for (int round = 0; round < 20; ++round) {
    const int who = round % 3;
    const std::uint16_t port = free_port();
    Processes ranks(3, [&](int r, const Processes::Report& report) {
      Communicator world = Communicator::join(meeting_at(port, GetParam(), r, 3));
      if (r == who) {
        world.barrier();
        world.abort("enough");
        ::_exit(0);
      }
      try {
        world.barrier();
        world.barrier();
        report('0');
      } catch (const Error& error) {
        report(error.code == ErrorCode::aborted && error.peer == who ? 'y' : 'n');
        ::usleep(100'000);  // rank 0 tells the others
      }
      ::_exit(0);
    });
    for (int told = 0; told < 2; ++told) EXPECT_EQ(ranks.next_report(), 'y') << "rank " << who << " aborted";
  }
}

// Nothing is owed to it: what it needs has been sent.
TEST_P(Process, NobodyWaitsInLeavingForARankThatIsLate) {
  Settings settings;
  settings.transport = GetParam();
  for (const int late : {0, 1})
    for (Tries tries(900ms); tries.go_on();) {  // in vain, each waits for a second
      const Arrivals left;
      std::array<Clock::duration, 3> took{};
      const auto thrown = outcomes(3, settings, [&](Communicator& world) {
        const int rank = world.rank();
        world.barrier();
        if (rank == late) {
          EXPECT_TRUE(left.wait_for(2));
        }
        const auto begin = Clock::now();
        destroy(world);
        took[rank] = Clock::now() - begin;
        left.add();
      });
      for (const auto& error : thrown) EXPECT_FALSE(error) << error->what();
      tries.took(*std::ranges::max_element(took));
    }
}

}  // namespace
}  // namespace tutti::internal
