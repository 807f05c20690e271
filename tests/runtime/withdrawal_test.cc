// Once a call has thrown, no peer touches the caller's buffers: not even one that was in the middle of them. The
// peer is held there: a page of its own buffer cannot be touched, and what touches it waits in a signal's handler.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <functional>
#include <new>
#include <string>
#include <vector>

#include "net/free_port.h"
#include "transport/verbs/device.h"
#include "transport/verbs/transport.h"
#include "tutti/communicator.h"

namespace tutti::internal {
namespace {

constexpr std::size_t kPage = 4096, kBytes = 16 * kPage, kCount = kBytes / 4;
constexpr int kLongestHeldMs = 400;  // while the call of a rank that waits, as it must, has not thrown
constexpr int kAbortsWithinMs = 20'000;

void sleep_ms(int ms) { ::usleep(static_cast<useconds_t>(ms) * 1000); }

void* mapped(std::size_t bytes) {
  void* const at = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  EXPECT_NE(at, MAP_FAILED);
  return at;
}

// What both ranks know, be they threads or processes.
struct Stage {
  std::atomic<bool> begun{false};   // the owner's call
  std::atomic<bool> held{false};    // the peer is in the middle
  std::atomic<bool> aborts{false};  // the owner's call is not driven any more, and about to fail
  std::atomic<bool> thrown{false};  // the owner's call has, and its buffers are in use for something else
  std::atomic<bool> over{false};    // the peer's call
};

struct Trap {
  std::byte* page;
  Stage* stage;
} trap;

// Whoever touches the page goes on once the owner's call has thrown, or has had time to.
void hold(int, siginfo_t* what, void*) {
  auto* const at = static_cast<std::byte*>(what->si_addr);
  if (at < trap.page || at >= trap.page + kPage) {
    ::signal(SIGSEGV, SIG_DFL);
    return;
  }
  trap.stage->held = true;
  for (int ms = 0; ms < kAbortsWithinMs && !trap.stage->aborts; ++ms) sleep_ms(1);
  for (int ms = 0; ms < kLongestHeldMs && !trap.stage->thrown; ++ms) sleep_ms(1);
  ::mprotect(trap.page, kPage, PROT_READ | PROT_WRITE);
}

class Withdrawal : public testing::TestWithParam<std::string> {
 protected:
  Withdrawal() : stage_(new (mapped(kPage)) Stage) {}
  ~Withdrawal() override { ::munmap(stage_, kPage); }

  // Threads over inproc, else processes.
  void on_two_ranks(int owner, const std::function<void(Communicator&)>& owners_part,
                    const std::function<void(Communicator&)>& peers_part) {
    const auto part = [&](int rank) { return rank == owner ? owners_part : peers_part; };
    if (GetParam() == "inproc")
      return Communicator::run_threads(2, [&](Communicator& world) { part(world.rank())(world); });
    Settings settings{.size = 2, .master_address = "127.0.0.1", .master_port = free_port(), .secret = "of this test"};
    settings.transport = GetParam();
    const pid_t child = ::fork();
    settings.rank = child == 0 ? 1 : 0;
    try {
      Communicator world = Communicator::join(settings);
      part(world.rank())(world);
    } catch (const Error& error) {
      ADD_FAILURE() << error.what();
    }
    if (child == 0) {
      std::fflush(stdout);
      ::_exit(HasFailure() ? 1 : 0);
    }
    int status = -1;
    ::waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
  }

  // The owner fails its call while the peer is held, and has another use for its buffers at once.
  void fail_in_the_middle(Communicator& world, Work work, std::initializer_list<const Memory*> buffers) {
    stage_->begun = true;
    while (!stage_->held && !stage_->over) work.test();
    stage_->aborts = true;
    world.abort("enough");
    EXPECT_THROW(work.wait(), Error);
    for (const Memory* buffer : buffers) std::ranges::fill(buffer->as<std::int32_t>(), -1);
    stage_->thrown = true;
    while (!stage_->over) sleep_ms(1);
    sleep_ms(20);  // what a device still writes
    for (const Memory* buffer : buffers)
      EXPECT_EQ(std::ranges::count(buffer->as<std::int32_t>(), -1), static_cast<std::ptrdiff_t>(kCount))
          << "the peer wrote to what was not its any more";
  }

  // The peer is held where the call touches `page`. Its result is the right one, or there is none.
  void be_held_at(std::byte* page, const std::function<void()>& call, const std::int32_t* result, std::int32_t right) {
    trap = {page, stage_};
    struct sigaction handler {
    }, before{};
    handler.sa_sigaction = hold;
    handler.sa_flags = SA_SIGINFO;
    ::sigaction(SIGSEGV, &handler, &before);
    while (!stage_->begun) sleep_ms(1);
    ::mprotect(page, kPage, PROT_NONE);
    try {
      call();
      EXPECT_EQ(std::count(result, result + kCount, right), static_cast<std::ptrdiff_t>(kCount))
          << "the peer read what was not its any more";
    } catch (const Error&) {
    }
    EXPECT_TRUE(stage_->held);
    stage_->over = true;
    ::sigaction(SIGSEGV, &before, nullptr);
  }

  Stage* const stage_;
};

// A peer's memory is read where it lies.
class Reading : public Withdrawal {};
INSTANTIATE_TEST_SUITE_P(Withdrawal, Reading, testing::Values("inproc", "shm"),
                         [](const auto& it) { return it.param; });

TEST_P(Reading, IsOverBeforeTheCallOfTheOwnerThrows) {
  on_two_ranks(
      0,
      [&](Communicator& world) {
        const Memory from = world.allocate(kBytes);
        std::ranges::fill(from.as<std::int32_t>(), 7);
        world.barrier();
        fail_in_the_middle(world, world.start_broadcast(from.data(), kCount, DType::int32, 0), {&from});
      },
      [&](Communicator& world) {
        const Memory its_own = world.allocate(kBytes);
        auto* const to = static_cast<std::byte*>(mapped(kBytes));
        world.barrier();
        be_held_at(
            to + kBytes / 2, [&] { world.broadcast(to, kCount, DType::int32, 0); }, reinterpret_cast<std::int32_t*>(to),
            7);
        ::munmap(to, kBytes);
      });
}

std::vector<std::string> wires() {
  std::vector<std::string> all{"inproc", "shm", "tcp"};
  try {
    verbs::try_out(*verbs::open_device({}), 1);
    all.emplace_back("verbs");
  } catch (const Error&) {  // there is no device, or none that can be used
  }
  return all;
}

// A reduction reads the peer's input, or a message of it, and its result goes straight to where the peer has posted.
class Writing : public Withdrawal {};
INSTANTIATE_TEST_SUITE_P(Withdrawal, Writing, testing::ValuesIn(wires()), [](const auto& it) { return it.param; });

TEST_P(Writing, IsOverOrImpossibleOnceTheCallOfTheOwnerHasThrown) {
  // Rank 0 reduces.
  const CallOptions options{.algorithm = Algorithm::binomial_tree};
  on_two_ranks(
      1,
      [&](Communicator& world) {
        const Memory in = world.allocate(kBytes), out = world.allocate(kBytes);
        std::ranges::fill(in.as<std::int32_t>(), 1);
        world.barrier();
        fail_in_the_middle(world, world.start_all_reduce(in.data(), out.data(), kCount, DType::int32, Op::sum, options),
                           {&in, &out});
      },
      [&](Communicator& world) {
        const Memory its_own = world.allocate(kBytes), out = world.allocate(kBytes);
        auto* const in = static_cast<std::byte*>(mapped(kBytes));
        std::fill_n(reinterpret_cast<std::int32_t*>(in), kCount, 2);
        world.barrier();
        be_held_at(
            in + kBytes / 2, [&] { world.all_reduce(in, out.data(), kCount, DType::int32, Op::sum, options); },
            out.as<std::int32_t>().data(), 3);
        ::munmap(in, kBytes);
      });
}

}  // namespace
}  // namespace tutti::internal
