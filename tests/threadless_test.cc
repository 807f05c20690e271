#include "threadless.h"

#include <gtest/gtest-spi.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <future>
#include <thread>

namespace tutti::internal {
namespace {

TEST(Threadless, CountsEachThreadThatIsStarted) {
  std::thread([] {}).join();
  std::async(std::launch::async, [] {}).get();
  EXPECT_EQ(take_threads_started(), 2);
  EXPECT_EQ(take_threads_started(), 0);
}

TEST(Threadless, CountsThreadsOfForkedProcesses) {
  const pid_t pid = ::fork();
  if (pid == 0) {
    std::thread([] {}).join();
    ::_exit(0);
  }
  ::waitpid(pid, nullptr, 0);
  EXPECT_EQ(take_threads_started(), 1);
}

TEST(Threadless, ACaseThatStartsAThreadFails) {
  EXPECT_NONFATAL_FAILURE(
      {
        std::thread([] {}).join();
        expect_no_thread_started();
      },
      "does not say THREADS");
}

}  // namespace
}  // namespace tutti::internal
