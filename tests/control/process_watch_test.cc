// When a process started, as others read it.
#include "control/process_watch.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <thread>

namespace tutti::internal {
namespace {

using namespace std::chrono_literals;

TEST(StartOfAProcess, IsTheSameForAsLongAsItLives) {
  const std::uint64_t start = start_of_process(::getpid());
  EXPECT_NE(start, 0u);
  EXPECT_EQ(start_of_process(::getpid()), start);
}

TEST(StartOfAProcess, IsUnknownOfOneThatIsNotThere) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(0);
  ::waitpid(child, nullptr, 0);
  EXPECT_EQ(start_of_process(child), 0u);
}

// Also if it goes after its file in /proc was opened.
TEST(StartOfAProcess, IsUnknownOfOneThatEndsMeanwhile) {
  std::atomic<pid_t> child{0};
  std::atomic<bool> stop{false};
  std::thread reader([&] {
    while (!stop) EXPECT_NO_THROW(start_of_process(child));  // 0: there is none
  });
  const auto end = std::chrono::steady_clock::now() + 500ms;
  while (std::chrono::steady_clock::now() < end) {
    const pid_t next = ::vfork();
    if (next == 0) ::_exit(0);
    child = next;
    std::this_thread::sleep_for(20us);
    ::waitpid(next, nullptr, 0);
  }
  stop = true;
  reader.join();
}

}  // namespace
}  // namespace tutti::internal
