#include "base/process_mutex.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <future>
#include <thread>

namespace tutti::internal {
namespace {

TEST(ProcessMutex, IsFreeInAChildThatWasForkedWhileAThreadHeldIt) {
  std::mutex& mutex = process_mutex(ProcessWide::segments);
  std::promise<void> holds;
  std::thread holder([&] {
    const std::lock_guard lock(mutex);
    holds.set_value();
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  });
  holds.get_future().wait();
  const pid_t child = ::fork();
  if (child == 0) ::_exit(mutex.try_lock() ? 0 : 1);
  int status = -1;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  holder.join();
  EXPECT_TRUE(mutex.try_lock());
  mutex.unlock();
}

}  // namespace
}  // namespace tutti::internal
