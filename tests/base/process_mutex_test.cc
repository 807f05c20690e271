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
  std::promise<void> holds, over;
  std::thread holder([&] {
    {
      const std::lock_guard lock(mutex);
      holds.set_value();
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
    over.get_future().wait();  // ThreadSanitizer reports a thread that has ended and is not joined, in the child
  });
  holds.get_future().wait();
  const pid_t child = ::fork();
  if (child == 0) ::_exit(mutex.try_lock() ? 0 : 1);
  int status = -1;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  over.set_value();
  holder.join();
  EXPECT_TRUE(mutex.try_lock());
  mutex.unlock();
}

}  // namespace
}  // namespace tutti::internal
