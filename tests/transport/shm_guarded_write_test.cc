// Writes to another process that must not begin once that has said stop.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <limits>
#include <memory>
#include <new>

#include "transport/shm/guarded_write.h"

namespace tutti::internal::shm {
namespace {

constexpr Period kAnyTime{0, std::numeric_limits<std::uint64_t>::max()};

// Shared with a child.
struct Shared {
  std::atomic<std::uint32_t> stop{0};
  std::array<std::byte, 16> from, to;

  static std::unique_ptr<Shared, void (*)(Shared*)> make() {
    void* const memory = ::mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    EXPECT_NE(memory, MAP_FAILED);
    auto* const shared = new (memory) Shared;
    shared->from.fill(std::byte{7});
    shared->to.fill(std::byte{0});
    return {shared, [](Shared* it) { ::munmap(it, sizeof(Shared)); }};
  }
  int write(pid_t process, Period period = kAnyTime) {
    return write_guarded(process, from.data(), reinterpret_cast<std::uintptr_t>(to.data()), from.size(), stop, period);
  }
};

TEST(GuardedWrite, WritesUnlessItIsStoppedOrLate) {
  if (!can_write_guarded()) GTEST_SKIP() << "this system has no restartable sequences, or lets nobody write";
  const auto shared = Shared::make();
  const auto nothing = shared->to;
  shared->stop = 1;
  EXPECT_EQ(shared->write(::getpid()), ECANCELED);
  EXPECT_EQ(shared->to, nothing);
  shared->stop = 0;
  EXPECT_EQ(shared->write(::getpid(), {time_stamp() - 100, 99}), EAGAIN);
  EXPECT_EQ(shared->write(::getpid(), {time_stamp() + (std::uint64_t{1} << 50), 1 << 30}), EAGAIN) << "it went back";
  EXPECT_EQ(shared->to, nothing);
  EXPECT_EQ(shared->write(::getpid(), {time_stamp(), std::uint64_t{1} << 40}), 0);
  EXPECT_EQ(shared->to, shared->from);
}
TEST(GuardedWrite, SaysWhatTheSystemSays) {
  if (!can_write_guarded()) GTEST_SKIP() << "this system has no restartable sequences, or lets nobody write";
  const std::atomic<std::uint32_t> stop{0};
  const std::byte from{};
  EXPECT_EQ(write_guarded(::getpid(), &from, 8, 1, stop, kAnyTime), EFAULT);
  const pid_t gone = ::fork();
  ASSERT_GE(gone, 0);
  if (gone == 0) ::_exit(0);
  ::waitpid(gone, nullptr, 0);
  EXPECT_EQ(write_guarded(gone, &from, reinterpret_cast<std::uintptr_t>(&from), 1, stop, kAnyTime), ESRCH);
}

#if defined(__x86_64__)

// The system call of write_guarded(): its number goes to a register, and the instruction follows.
const std::byte* system_call() {
  static constexpr unsigned char kCall[] = {0xb8, 0x37, 0x01, 0x00, 0x00, 0x0f, 0x05};
  const auto* const begin = reinterpret_cast<const std::byte*>(&write_guarded);
  for (std::size_t at = 0; at < 512; ++at)
    if (std::memcmp(begin + at, kCall, sizeof kCall) == 0) return begin + at + sizeof kCall - 2;
  return nullptr;
}

// A process that is taken off its core between the look and the call: when it comes back, it does not make the call.
TEST(GuardedWrite, IsCutWhereTheThreadStoppedBehindItsLook) {
  if (!can_write_guarded()) GTEST_SKIP() << "this system has no restartable sequences, or lets nobody write";
  const std::byte* const call = system_call();
  ASSERT_NE(call, nullptr);
  for (const bool stops : {true, false}) {
    const auto shared = Shared::make();
    const auto nothing = shared->to;
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      if (::ptrace(PTRACE_TRACEME, 0, nullptr, nullptr) != 0) ::_exit(1);
      ::raise(SIGSTOP);
      ::_exit(shared->write(::getpid()));
    }
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    if (!WIFSTOPPED(status)) GTEST_SKIP() << "this system lets no process trace another";
    ASSERT_EQ(::ptrace(PTRACE_SETOPTIONS, child, nullptr, reinterpret_cast<void*>(PTRACE_O_EXITKILL)), 0);
    // A breakpoint in place of the call.
    auto* const at = const_cast<std::byte*>(call);
    errno = 0;
    const long code = ::ptrace(PTRACE_PEEKTEXT, child, at, nullptr);
    ASSERT_EQ(errno, 0);
    ASSERT_EQ(::ptrace(PTRACE_POKETEXT, child, at, reinterpret_cast<void*>((code & ~0xffL) | 0xcc)), 0);
    ASSERT_EQ(::ptrace(PTRACE_CONT, child, nullptr, nullptr), 0);
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFSTOPPED(status) && WSTOPSIG(status) == SIGTRAP) << status;
    user_regs_struct registers{};
    ASSERT_EQ(::ptrace(PTRACE_GETREGS, child, nullptr, &registers), 0);
    ASSERT_EQ(registers.rip, reinterpret_cast<std::uintptr_t>(call) + 1);
    registers.rip -= 1;
    ASSERT_EQ(::ptrace(PTRACE_POKETEXT, child, at, reinterpret_cast<void*>(code)), 0);
    ASSERT_EQ(::ptrace(PTRACE_SETREGS, child, nullptr, &registers), 0);
    if (stops) shared->stop = 1;
    ASSERT_EQ(::ptrace(PTRACE_CONT, child, nullptr, nullptr), 0);
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFEXITED(status)) << status;
    EXPECT_EQ(WEXITSTATUS(status), EAGAIN);
    EXPECT_EQ(shared->to, nothing) << stops;
  }
}

#endif

}  // namespace
}  // namespace tutti::internal::shm
